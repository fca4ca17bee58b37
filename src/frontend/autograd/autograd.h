// Autograd inside a run: grad mode, `.grad`, backward(), and what leaves the run differentiable.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// `.grad` refers to that from now on.
void set_grad(Tensor& tensor, Value value);
/// All values that gradients may end in.
std::vector<graph::Value*> values_of_leaves(const Interpreter& interpreter);

/// tensor.grad; tensor.grad = value
Value read_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);
void write_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                const Value& value);
/// tensor.grad = None, without a look at what it is.
void clear_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);

/// Eager leaves None where no gradient comes to: which of the targets that is must not depend on a
/// branch. Throws CannotMerge for one that it depends on.
void check_certain(Interpreter& interpreter, const std::vector<graph::Value*>& outputs,
                   const std::vector<graph::Value*>& targets);
/// Refuses if a value that the gradient of `outputs` needs was changed in place: eager would raise.
void check_saved_values(Interpreter& interpreter, const std::vector<graph::Value*>& outputs);

/// Gradients of the outputs, with seeds (none: one), with respect to the targets.
std::vector<graph::Value*> append_gradient(Interpreter& interpreter,
                                           const std::vector<graph::Value*>& outputs,
                                           const std::vector<graph::Value*>& seeds,
                                           const std::vector<graph::Value*>& targets,
                                           bool create_graph);

/// A flag of the graph, by which the tensor, which is taken for tracked, requires a gradient; null:
/// it surely does.
graph::Value* gradient_flag(Interpreter& interpreter, const Tensor& tensor);

/// Whether the tensor requires a gradient, where the program sees it. Where only the run knows, the
/// generation begins anew with the branch followed that decides it.
bool shows_gradient(Interpreter& interpreter, const Tensor& tensor);

/// Whether the value is what a branch gives of which one side has a tensor that requires a
/// gradient, and the other one that needs none.
bool is_tracked_on_one_side(const graph::Value& value);

/// Begins the generation anew, with the branch followed, where the tensor requires a gradient in
/// some runs only. Those of recursions can't be followed.
void expect_known_gradient(Interpreter& interpreter, const Tensor& tensor);

/// Whether a backward() has freed what gradients of the values need.
bool is_consumed(const Interpreter& interpreter, const std::vector<graph::Value*>& values);

/// Result `index` of the graph is a tensor that eager would give a grad_fn.
void note_differentiable_result(Interpreter& interpreter, const Tensor& tensor, size_t index);

/// Whether the real tensor has a .grad now.
bool had_grad(const Tensor& tensor);

/// Emits the rebinds of `.grad`.
void finish_autograd(Interpreter& interpreter);

}  // namespace janus::frontend
