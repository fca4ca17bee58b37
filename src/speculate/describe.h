// Python objects as short text for reasons and reports, and equality of constants; neither ever
// runs code of the user's program.
#pragma once

#include <string>

#include "python/object.h"

namespace janus::speculate {

struct TensorPattern;

/// The UTF-8 text of a str; lone surrogates are replaced.
std::string text_of(PyObject* string);

/// "3", "'train'", "f32[20,784]", "the function forward", "the class Linear", "a LeNet object".
std::string describe_object(PyObject* object);
/// A tensor, with what makes it another than assumed beside its dtype and shape.
std::string describe_against(PyObject* object, const TensorPattern& pattern);

/// Equal for good: the same object, or the same exact type and equal ints, floats (by their bits),
/// complex numbers, strings, bytes, ranges, slices, or tuples and frozensets of such.
bool equal_constants(PyObject* a, PyObject* b);

}  // namespace janus::speculate
