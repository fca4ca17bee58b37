// The functions that scalar programs may call, and which code computes them for whole vectors: an
// instruction of the processor, code of our own (vector_math.h), or a function of Sleef's that
// torch exports. Where there is none of them (torch is not in the process), the C library's
// function is called for each lane.
#pragma once

#include <string>
#include <string_view>

namespace janus::kernels {

struct Function {
  std::string_view name;  ///< as scalar programs call it: C's name for doubles
  int arity = 1;
  std::string_view intrinsic;  ///< LLVM's, for functions that need no library
  std::string_view accuracy;   ///< suffix of Sleef's variant that eager uses, "_u10": within 1 ulp
  int cost = 1;                ///< see LoopNest::cost
};

/// Null if scalar programs may not call it.
const Function* find_function(std::string_view name);

/// "Sleef_expf16_u10", "Sleef_expd8_u10".
std::string vector_name(const Function& function, bool is_double, int lanes);
/// "expf", "exp".
std::string scalar_name(const Function& function, bool is_double);

}  // namespace janus::kernels
