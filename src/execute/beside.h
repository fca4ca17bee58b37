// Finds operations that can run side by side: two matrix products that do not need each other, such
// as the two gradients of a linear layer. Each on one thread is faster than one after the other on
// two, where they are small.
#pragma once

#include <cstddef>
#include <vector>

#include "execute/frame.h"
#include "execute/relayout.h"

namespace janus::execute {

/// Moves partners next to each other; gives, for each instruction, whether it is the first of two.
std::vector<bool> pair_operations(PlannedCode& code, const Frame& frame);

}  // namespace janus::execute
