// What code is made for: the processor's vectors, and the functions that can be linked.
#pragma once

#include <functional>
#include <string_view>

namespace janus::kernels {

struct Target {
  /// 64: AVX-512. 32: AVX2. 16: SSE, or NEON.
  int vector_bytes = 64;
  /// Whether one instruction multiplies and adds, and rounds once; wider vectors always have it.
  bool has_fused_multiply_add = true;
  /// Whether a function of that name can be linked (Sleef's).
  std::function<bool(std::string_view)> has_function;
};

}  // namespace janus::kernels
