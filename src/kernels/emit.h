// Loop nests to LLVM text: one function that walks two dimensions of the space and the reduced
// ones, the innermost by vectors, with the last, incomplete vector masked. An element's value does
// not depend on where in a vector it falls, so neither size, strides nor threads change the results
// of elementwise nests.
//
// The function, whatever the nest:
//
//   void kernel(ptr tensors, ptr strides, ptr sizes, ptr numbers, ptr extents)
//
// tensors: each tensor's first element. sizes: of the dimension of the lanes, of the rows, and of
// the reduced dimensions that are left, from the inside. strides: for each of these dimensions
// kMaxTensors numbers, in elements. numbers: 8 bytes each. extents: the sizes of the space before
// anything was joined.
#pragma once

#include <string>

#include "kernels/loop_nest.h"
#include "kernels/target.h"
#include "kernels/walk.h"

namespace janus::kernels {

/// Outputs that run along the lanes must not be walked as `broadcast`.
std::string emit(const LoopNest& nest, const Order& order, const Target& target);

/// Whether the nest's functions have code for vectors of any width, those apart that are computed
/// once for a row where lanes lie `along_rows`.
bool can_widen(const LoopNest& nest, const Target& target, bool along_rows);

}  // namespace janus::kernels
