// Gradients within a run: backward() and torch.autograd.grad become `gradient` nodes, which the
// differentiation pass expands. The checks refuse what eager would raise, and what would depend on
// a branch.
#pragma once

#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Eager leaves None where no gradient comes to: which of the targets that is must not depend on a
/// branch. Throws CannotMerge for one that it depends on.
void check_certain(Interpreter& interpreter, const std::vector<graph::Value*>& outputs,
                   const std::vector<graph::Value*>& targets);

/// Refuses if a value that the gradient of `outputs` needs was changed in place: eager would raise.
void check_saved_values(Interpreter& interpreter, const std::vector<graph::Value*>& outputs);

/// Refuses if the outputs depend on some results only of an operator whose gradient eager may then
/// not give.
void check_all_results_used(Interpreter& interpreter, const std::vector<graph::Value*>& outputs);

/// Gradients of the outputs, with seeds (none: one), with respect to the targets.
std::vector<graph::Value*> append_gradient(Interpreter& interpreter,
                                           const std::vector<graph::Value*>& outputs,
                                           const std::vector<graph::Value*>& seeds,
                                           const std::vector<graph::Value*>& targets,
                                           bool create_graph);

}  // namespace janus::frontend
