// The default CPU generator's state, saved before a run that draws and put back if it is given up.
#pragma once

#include <memory>

#include "execute/library.h"

namespace janus::torch {

std::unique_ptr<execute::RandomState> make_random_state();

}  // namespace janus::torch
