// Functions on vectors of f32 that are written out in LLVM, because they are in nearly every
// network and a call costs more than the function itself: exp, tanh, erf. Polynomials fitted for
// the smallest largest error; results are within 1.4 units of the last place (measured over all
// ranges), special values as the C library's.
#pragma once

#include <string>
#include <string_view>

namespace janus::kernels {

bool has_vector_math(std::string_view function);

/// Definition of `@vector.<function>` on vectors of `lanes` floats; `has_avx512`: with instructions
/// of AVX-512.
std::string vector_math(std::string_view function, int lanes, bool has_avx512);

/// Declarations of the intrinsics that the definitions use.
std::string vector_math_declarations(int lanes, bool has_avx512);

}  // namespace janus::kernels
