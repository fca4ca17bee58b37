// Functions under functools.lru_cache and functools.cache.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What the cache holds for the arguments, which is assumed to stay; the call itself, which counts
/// and moves what it finds to the front, is made behind the run. Null if nothing is there, or the
/// key of such arguments isn't known.
Value call_cached_function(Interpreter& interpreter, const Known& function,
                           const CallArguments& arguments);

}  // namespace janus::frontend
