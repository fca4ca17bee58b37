// What torch/ gives to the rooms above, set up once.
#pragma once

#include "torch/aten_library.h"

namespace janus::torch {

/// Sets the handle operations, the tensor access, the services for the frontend and the
/// differentiation. Call once, with Python's lock held, after torch has been imported.
void initialise();

}  // namespace janus::torch
