// The tables of callables that the files of this room handle.
#pragma once

#include "frontend/core/known_callables.h"

namespace janus::frontend {

std::span<const SpecialCallable> builtin_callables();
std::span<const SpecialCallable> builtin_container_callables();
std::span<const SpecialCallable> context_variable_callables();
std::span<const SpecialCallable> effect_callables();
std::span<const SpecialCallable> import_callables();
std::span<const SpecialCallable> json_callables();
std::span<const SpecialCallable> library_callables();
std::span<const SpecialCallable> lock_callables();
std::span<const SpecialCallable> mapping_proxy_callables();
std::span<const SpecialCallable> pattern_callables();
std::span<const SpecialCallable> signature_callables();
std::span<const SpecialCallable> standard_library_callables();

}  // namespace janus::frontend
