// The tables of callables that the files of this room handle.
#pragma once

#include "frontend/core/known_callables.h"

namespace janus::frontend {

std::span<const SpecialCallable> copy_callables();
std::span<const SpecialCallable> deque_callables();
std::span<const SpecialCallable> dict_callables();
std::span<const SpecialCallable> partial_callables();
std::span<const SpecialCallable> set_callables();

}  // namespace janus::frontend
