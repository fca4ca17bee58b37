// torchjanus.function's result: a Python object that is called like the function it wraps.
#pragma once

#include "python/object.h"
#include "speculate/dispatch.h"

namespace janus::bind {

/// The type object `torchjanus.Function`; ready for use. Throws python::ErrorSet.
PyObject* function_type();

/// The plain Python function that a Function calls (borrowed); null if the object is no Function,
/// or stands for a bound method or something that is no Python function.
PyObject* function_behind(PyObject* object);

}  // namespace janus::bind
