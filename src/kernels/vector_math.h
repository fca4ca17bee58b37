// Functions on vectors of f32 that are written out in LLVM, because they are in nearly every
// network and a call costs more than the function itself: exp, tanh, erf. Polynomials fitted for
// the smallest largest error; results are within 1.4 units of the last place (measured over all
// ranges), special values as the C library's. And roots that are not rounded correctly, for
// processors where eager's are not.
#pragma once

#include <string>
#include <string_view>

#include "kernels/target.h"

namespace janus::kernels {

/// Polynomials take fused multiply-adds: without, a library does better.
bool has_vector_math(std::string_view function, const Target& target);

/// Definition of `@vector.<function>` on vectors of `lanes` floats, which may be several of the
/// target's.
std::string vector_math(std::string_view function, int lanes, const Target& target);

/// Declarations of the intrinsics that the definition uses.
std::string vector_math_declarations(std::string_view function, int lanes, const Target& target);

/// "refined_sqrt" of doubles: definition of a function of that name on vectors of `lanes` doubles.
std::string refined_root_of_doubles_name(int lanes);
std::string refined_root_of_doubles(int lanes, const Target& target);
std::string refined_root_of_doubles_declarations(int lanes, const Target& target);

}  // namespace janus::kernels
