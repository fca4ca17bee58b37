// torch.no_grad and its relatives.
#pragma once

#include <span>

#include "frontend/callables.h"

namespace janus::frontend {

std::span<const SpecialCallable> grad_mode_callables();

}  // namespace janus::frontend
