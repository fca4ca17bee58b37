// Branches in the graph: both sides of a test that only the run decides are interpreted, each from
// the same state into a block of its own, and what they leave behind is merged.
//
// A side that leaves the enclosing block (return, break, continue) while the other goes on stays
// open: the interpreter goes on with the other side, inside its block, until that one leaves in the
// same way; `Frame::forks` are those of the function at hand. Where two sides can't be merged, the
// whole generation begins anew with that test followed (CannotMerge), so nothing has to be undone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

/// Whether one more branch or loop is not too many.
bool has_room_for_fork(const Scopes& scopes);
/// Whether the test or loop may become part of the graph at all.
bool may_merge(Interpreter& interpreter, int fact);
/// Whether both sides of the test shall be in the graph: the profile saw both, and nothing speaks
/// against merging them.
bool takes_both(Interpreter& interpreter, int fact);
/// The same of a test at hand, of which the profile may not have seen all: one of a remainder
/// (`step % 20 == 0`), or of an int that varies against a bound (`step < warmup`), comes out both
/// ways sooner or later.
bool takes_both(Interpreter& interpreter, int fact, const Truth& truth);

/// The value that `first` gives where the test holds, else that of `second`.
Value choose(Interpreter& interpreter, const Truth& truth, int fact,
             const std::function<Value()>& first, const std::function<Value()>& second);

Value choose(Interpreter& interpreter, const Truth& truth, const TestKey& test,
             const std::function<Value()>& first, const std::function<Value()>& second);

/// As `choose` for statements; the frame may have one more open fork afterwards.
Completion choose_statements(Interpreter& interpreter, const Truth& truth, int fact,
                             const std::function<Completion()>& first,
                             const std::function<Completion()>& second);

/// The forks of the frame beyond the first `count` end here: all sides left by `completion`. (A
/// pending `return` merges what is returned.)
void close_forks(Frames& frames, size_t count, Completion completion);
/// Of those, closes the ones on top whose other side left by `pending`, which means the same here
/// as how the side at hand ended.
void close_forks_that(Frames& frames, size_t count, Completion pending);

/// Does something where a block of statements ends, on each side that is still open, as its way of
/// ending has it: gives how it ends then. `concerns`: the ways of ending that it has to do with.
Completion on_each_side(Frames& frames, size_t count, Completion completion,
                        const std::function<bool(Completion)>& concerns,
                        const std::function<Completion(Completion)>& action);

/// The end of a function: what it returns, or an Outcome where some sides raise.
Value outcome_of(Interpreter& interpreter, Completion completion);

/// What is executed needs a result that is not known yet (frontend/recursion/recursion.h): goes on
/// with the innermost side that has returned, with the state it left. False if there is none.
bool return_instead(Frames& frames);

}  // namespace janus::frontend
