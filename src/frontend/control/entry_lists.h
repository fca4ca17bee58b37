// Pre-existing lists and tuples whose length differs from call to call. Their elements are a list
// of the graph (frontend/control/symbolic_lists.h), and their length is a dimension, as a tensor's
// size is. So one graph serves all lengths from 2 on.
//
// That takes elements that are all alike: numbers of one class, tensors of one dtype and shape
// without gradients, tuples of such. What needs the elements one by one, changes the list or hands
// on one of its tensors begins the generation anew with this list's length as an assumption.
#pragma once

#include "frontend/core/interpreter.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

/// The elements of the list or tuple as a list of the graph, with what is assumed of them; null if
/// its length has not varied, or it can't be one.
std::shared_ptr<const Rolled> varying_list(Interpreter& interpreter, const Known& known);

/// What stands for such a list in the run; any other value as it is.
Value opened_if_varying(Interpreter& interpreter, const Value& value);

/// The test that is followed if the list's elements are needed one by one.
TestKey entry_list_test(const Source* source);

}  // namespace janus::frontend
