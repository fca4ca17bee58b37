// The tables of callables that the files of this room handle.
#pragma once

#include "frontend/core/known_callables.h"

namespace janus::frontend {

/// Empty until the program has loaded numpy.random, which `import numpy` alone does not.
std::span<const SpecialCallable> numpy_callables();
/// Empty until the program has loaded NumPy.
std::span<const SpecialCallable> numpy_number_callables();
std::span<const SpecialCallable> python_callables();

}  // namespace janus::frontend
