// What torch.amp.GradScaler calls of torch.
#pragma once

#include <span>

#include "frontend/callables.h"

namespace janus::frontend {

std::span<const SpecialCallable> gradient_scaler_callables();

}  // namespace janus::frontend
