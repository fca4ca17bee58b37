// Induction ranges: what a `for` loop of the graph goes over. The graph computes the length, and
// finds each element by its position.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

struct Counted {
  std::vector<Value> lengths;                           ///< numbers; the shortest counts
  std::function<Value(const Value& position)> element;  ///< asked for one after the other
  bool is_rolled = false;  ///< goes over a list of the graph, however long that is
  /// Of such lists: whether some of their elements may never be asked for.
  std::shared_ptr<bool> partly = std::make_shared<bool>(false);
};

// --- what a loop may go over

/// range(*arguments); nothing: its step is not known, or the arguments are no ints.
std::optional<Counted> counted_range(Interpreter& interpreter, const CallArguments& arguments);
/// The rows of a tensor; nothing for any other value.
std::optional<Counted> counted_rows(Interpreter& interpreter, const Value& value);
/// The elements of a list of the graph, or from the last to the first; nothing for any other value.
std::optional<Counted> counted_list(Interpreter& interpreter, const Value& value, bool backwards);
/// The elements of a list or tuple that only the run meets; `fact`: of the expression that gave it.
/// Nothing for any other value.
std::optional<Counted> counted_elements(Interpreter& interpreter, const Value& value, int fact);
/// zip(*parts)
Counted zipped(std::vector<Counted> parts);
/// enumerate(inner, start)
Counted enumerated(Interpreter& interpreter, Counted inner, const Value& start);
/// The elements from the last to the first.
Counted backwards(Interpreter& interpreter, Counted inner);

// --- how many iterations there are

/// Whether the value is an int.
bool is_int_number(const Value& value);
/// Whether a loop over it is one in the graph.
bool is_in_graph(const Scopes& scopes, const Counted& counted);
/// How many elements there are, as an expression of dimensions; null: only the run knows.
Value iterations_of(ValueMaker& maker, const Counted& counted);

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

/// Appends the elements to the list, by a loop in the graph. `may_be_empty`: also where no run has
/// been seen without any.
void append_counted(Interpreter& interpreter, const TestKey& test, Sequence& list,
                    const Counted& counted, bool may_be_empty);
/// The elements of a list that only the run meets, as many as the profile always saw. `loop` and
/// `iterable` are the facts of the loop and of what it goes over.
Value expected_elements(Interpreter& interpreter, const RuntimeObject& object, int loop,
                        int iterable);

}  // namespace janus::frontend
