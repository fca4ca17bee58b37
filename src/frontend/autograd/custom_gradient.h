// Places where the gradient of a run goes through the program's own code: subclasses of
// torch.autograd.Function and hooks on tensors.
//
// The graph is cut there: what the tensor is afterwards is a value that no gradient flows through,
// and backward() takes the gradient up to it, calls the code as eager does, then goes on from what
// that gave. So the code runs when it does in eager, in the same order, and is interpreted as any
// other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

struct AutogradState;

/// None, or nothing at all.
inline bool is_missing(const Value& value) { return value == nullptr || is_none(value); }

/// Tensors that the program's own code got on the way, or gave: gradients may lie in their memory.
using Handed = std::vector<std::weak_ptr<Tensor>>;

/// Adds to the outputs whose gradient is wanted, and their seeds, what lies beyond the program's
/// own code that they reach.
Handed follow_custom_gradients(Interpreter& interpreter, std::vector<graph::Value*>& outputs,
                               std::vector<graph::Value*>& seeds, bool create_graph, bool retain);
/// The values, and those that lie beyond the program's own code that they reach. `consumed`:
/// whether some of that code can't be gone through again.
std::vector<graph::Value*> beyond_custom_gradients(const AutogradState& autograd,
                                                   std::vector<graph::Value*> values,
                                                   bool& consumed);
/// What the hooks make of a gradient, one after the other; null: removed.
Value run_hooks(Interpreter& interpreter, const std::vector<Value>& hooks, Value gradient);
/// Refuses if a gradient of the value, due outside of the run, would reach such code.
void check_no_custom_gradient(Interpreter& interpreter, graph::Value* value);

}  // namespace janus::frontend
