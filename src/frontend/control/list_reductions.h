// Symbolic lists taken element by element: sums and other reductions, each a loop of the graph.
#pragma once

#include <functional>

#include "frontend/core/interpreter.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

/// What the step makes of a total and of each element in turn, by a loop in the graph.
using Step = std::function<Value(const Value& total, const Value& element)>;

Value accumulated(Interpreter& interpreter, const Rolled& list, const Value& start,
                  const Step& step);

/// As accumulated(), beginning with what `begin` makes of the first element, which is guarded to be
/// there. Null: there is none.
Value accumulated_from_first(Interpreter& interpreter, const Rolled& list,
                             const std::function<Value(const Value&)>& begin, const Step& step);

/// The numbers of a tensor of one dimension, as a list of the graph.
Value list_of_numbers(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);

/// sum(list)
Value sum(Interpreter& interpreter, const Rolled& list, const Value& start);

/// The sum of its elements, which there have to be.
Value total_of(Interpreter& interpreter, const Rolled& list);

}  // namespace janus::frontend
