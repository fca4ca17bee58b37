// What code is made for: the width of the processor's vectors, and the functions that can be
// linked.
#pragma once

#include <functional>
#include <string_view>

namespace janus::kernels {

struct Target {
  int vector_bytes = 64;
  /// Whether a function of that name can be linked (Sleef's).
  std::function<bool(std::string_view)> has_function;
};

}  // namespace janus::kernels
