// What a `for` loop in the graph goes over: things whose length the graph computes and whose
// elements it finds by their position.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontend/branches.h"
#include "frontend/interpreter.h"

namespace janus::frontend {

struct Counted {
  std::vector<Value> lengths;                           ///< numbers; the shortest counts
  std::function<Value(const Value& position)> element;  ///< asked for one after the other
  bool is_rolled = false;  ///< goes over a list of the graph, however long that is
  /// Of such lists: whether some of their elements may never be asked for.
  std::shared_ptr<bool> partly = std::make_shared<bool>(false);
};

/// What an expression gives to be iterated over.
struct Iterated {
  Value value;                     ///< null if it is counted
  std::optional<Counted> counted;  ///< range(), rows of a tensor, enumerate() and zip() of such
};

/// Evaluates what is behind `in`; it is counted only if its length varies from call to call, or is
/// too great to be unrolled (Interpreter::most_unrolled). `loop`
/// is the loop that can't be in the graph if that is counted in part only.
Iterated evaluate_iterated(Interpreter& interpreter, const syntax::Expression& expression,
                           const TestKey& loop);

/// The elements of a list or tuple that only the run meets; `fact`: of the expression that gave it.
/// Nothing for any other value.
std::optional<Counted> counted_elements(Interpreter& interpreter, const Value& value, int fact);

/// The elements of a list that only the run meets, as many as the profile always saw. `loop` and
/// `iterable` are the facts of the loop and of what it goes over.
Value expected_elements(Interpreter& interpreter, const RuntimeObject& object, int loop,
                        int iterable);

/// How many elements there are, as an expression of dimensions; null: only the run knows.
Value rounds_of(Interpreter& interpreter, const Counted& counted);

/// Appends the elements to the list, by a loop in the graph. `may_be_empty`: also where no run has
/// been seen without any.
void append_counted(Interpreter& interpreter, const TestKey& test, Sequence& list,
                    const Counted& counted, bool may_be_empty);

/// Where a loop in the graph stands in what it goes over.
class Positions {
 public:
  Positions(Interpreter& interpreter, const Counted& counted);

  Truth has_next() const;
  /// The next element.
  Value next();

 private:
  Interpreter& interpreter_;
  const Counted& counted_;
  std::shared_ptr<Variables> state_;  ///< what the loop carries
};

}  // namespace janus::frontend
