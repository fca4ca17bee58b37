// Results of a run that have a gradient: the caller may call backward() on them. Those through
// which the run itself has gone backward have a consumed tape.
#pragma once

#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Whether a backward() has freed what gradients of the values need.
bool is_consumed(const InterpreterState& state, const std::vector<graph::Value*>& values);

/// Result `index` of the graph is a tensor that eager would give a grad_fn.
void note_differentiable_result(Interpreter& interpreter, const Tensor& tensor, size_t index);

}  // namespace janus::frontend
