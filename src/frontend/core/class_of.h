// The class of a value.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// The class of a value, as `type(value)` gives it.
Value type_of(Interpreter& interpreter, const Value& value);

/// The class object alone; null if it is not known.
PyTypeObject* class_of(const Value& value);

}  // namespace janus::frontend
