// Python objects as short text for reasons and reports, and equality of constants. Neither ever
// runs the user's code.
#pragma once

#include <string>

#include "python/object.h"

namespace janus::speculate {

struct TensorPattern;

/// The UTF-8 text of a str; lone surrogates are replaced.
std::string text_of(PyObject* string);

/// "3", "'train'", "f32[20,784]", "the function forward", "the class Linear", "a LeNet object".
std::string describe_object(PyObject* object);
/// A tensor: dtype, shape, and whatever else differs from the assumed pattern.
std::string describe_against(PyObject* object, const TensorPattern& pattern);

/// Immutably equal: the same object, or the same exact type and equal ints, floats (by their bits),
/// complex numbers, strings, bytes, ranges, slices, or tuples and frozensets of such.
bool equal_constants(PyObject* a, PyObject* b);

}  // namespace janus::speculate
