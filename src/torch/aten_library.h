// Tensors and operators for the executor, by ATen.
#pragma once

#include "execute/library.h"

namespace janus::torch {

/// The one library of the process.
execute::Library& library();

}  // namespace janus::torch
