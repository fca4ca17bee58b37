// str.format: each field's value is looked up and shown as in an f-string.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// format.format(...): the format is the first of the positional arguments. Refuses formats that
/// only the run knows if one of the others is an object that the format may look into.
Value format_by_fields(Interpreter& interpreter, PyObject* callable,
                       const CallArguments& arguments);

}  // namespace janus::frontend
