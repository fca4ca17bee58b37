// id(), and the numbers that it gives (frontend/values/identity_number.h).
#pragma once

#include "frontend/core/interpreter.h"
#include "frontend/values/identity_number.h"

namespace janus::frontend {

/// id(value); null for values of which that can't be said.
python::Object identity_number(Interpreter& interpreter, const Value& value);

/// Whether a number that id() gave is that of the value, which is no constant.
bool is_number_of(Interpreter& interpreter, PyObject* number, const Value& value);

}  // namespace janus::frontend
