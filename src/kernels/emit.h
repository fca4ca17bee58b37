// Loop nests to LLVM text: one function that walks two dimensions of the space, the inner one by
// vectors, with the last, incomplete vector masked. An element's value does not depend on where in
// a vector it falls, so neither size, strides nor threads change results.
//
// The function, whatever the nest:
//
//   void kernel(ptr tensors, ptr inner_strides, ptr outer_strides, i64 inner, i64 outer, ptr
//   numbers)
//
// tensors: each tensor's first element; strides: in elements, one for each tensor; numbers: 8 bytes
// each. inner and outer are at least 1.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/loop_nest.h"

namespace janus::kernels {

/// How a tensor is walked along the inner dimension. Code is made for one combination of these.
enum class Walk : uint8_t {
  broadcast,   ///< stride 0: one element for the whole row
  contiguous,  ///< stride 1
  strided,     ///< any stride
};

struct Target {
  int vector_bytes = 64;
  /// Whether a function of that name can be linked (Sleef's).
  std::function<bool(std::string_view)> has_function;
};

/// `walks`: one for each tensor of the nest. Outputs must not be `broadcast`.
std::string emit(const LoopNest& nest, const std::vector<Walk>& walks, const Target& target);

}  // namespace janus::kernels
