// The tables of callables that the files of this room handle.
#pragma once

#include "frontend/core/known_callables.h"

namespace janus::frontend {

std::span<const SpecialCallable> autocast_callables();
std::span<const SpecialCallable> mask_callables();
std::span<const SpecialCallable> packed_callables();

}  // namespace janus::frontend
