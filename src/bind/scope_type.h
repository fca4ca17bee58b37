// The Python type of the scopes of co-execution (bind/co_execution_scope.h).
#pragma once

#include "python/object.h"

namespace janus::bind {

/// The type object `torchjanus.CoExecutionScope`. Throws python::ErrorSet.
PyObject* co_execution_scope_type();

}  // namespace janus::bind
