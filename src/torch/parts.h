// The singletons of this room, for initialise().
#pragma once

#include "frontend/core/torch_services.h"
#include "speculate/differentiable.h"
#include "speculate/tensor_access.h"

namespace janus::torch {

speculate::TensorAccess& tensor_access();
speculate::Differentiation& differentiation();
frontend::TorchServices& services();

}  // namespace janus::torch
