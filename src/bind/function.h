// torchjanus.Function, which torchjanus.function returns: a callable that wraps a Python function.
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
