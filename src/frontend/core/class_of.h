// The class of a value.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// The class of a value, as `type(value)` gives it.
Value type_of(Interpreter& interpreter, const Value& value);

/// The class object alone; null if it is not known.
PyTypeObject* class_of(const Value& value);

/// Whether torch takes it where it wants a list: a list or tuple, also of a derived class, but no
/// deque and no view of a dict.
bool is_list_or_tuple(const Value& value);

/// Whether it is the keys, values or items of a dict: no sequence for Python.
bool is_dict_view(const Value& value);

}  // namespace janus::frontend
