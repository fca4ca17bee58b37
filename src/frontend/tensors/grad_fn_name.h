// Eager's names of autograd nodes.
#pragma once

#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

/// What eager calls the autograd node behind the tensor, "NllLossBackward0".
std::string grad_fn_name(const TensorState& tensor);

}  // namespace janus::frontend
