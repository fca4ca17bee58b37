// Hooks of leaves that existed before the call: of their gradients (register_hook), and of what
// those were added to (register_post_accumulate_grad_hook).
//
// backward() calls them with the gradient that all of it gives a leaf. In which order the engine
// comes to the leaves is its own affair, so hooks may only do what no order shows.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "frontend/autograd/custom_gradient.h"
#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// What the hooks of a leaf make of a gradient; the same if there are none. Adds to `handed` what
/// they got and gave.
graph::Value* through_hooks(Interpreter& interpreter, const std::shared_ptr<Tensor>& leaf,
                            graph::Value* gradient, Handed& handed);
/// Calls those that follow the accumulation.
void call_accumulation_hooks(Interpreter& interpreter, const std::shared_ptr<Tensor>& leaf);

/// Runs the body, which calls hooks of these leaves; refuses if it does what an order would show.
void in_any_order(Interpreter& interpreter, std::span<const std::shared_ptr<Tensor>> leaves,
                  const std::function<void()>& body);

}  // namespace janus::frontend
