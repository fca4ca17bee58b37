// What eager calls the autograd node behind the result of a call.
#pragma once

#include <string>

#include "frontend/core/torch_services.h"

namespace janus::torch {

/// See frontend::TorchServices.
std::string grad_fn_name(const frontend::ProducingCall& call);

}  // namespace janus::torch
