// Whether a tensor requires a gradient, where that depends on a branch or loop of the graph. The
// interpreter takes such a tensor for tracked; who shows the property to the program asks here.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

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

}  // namespace janus::frontend
