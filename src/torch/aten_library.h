// Tensors and operators for the executor, by ATen.
#pragma once

#include "execute/library/library.h"

namespace janus::torch {

/// The one library of the process.
execute::Library& library();

}  // namespace janus::torch
