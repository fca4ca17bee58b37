// isinstance and issubclass: the classes of their second argument, and the answers of metaclasses
// and abstract base classes. An answer that can change while the program runs is assumed to stay,
// or refused.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The classes of isinstance's second argument.
void collect_classes(Interpreter& interpreter, const Value& value, std::vector<Value>& classes);

/// What the metaclass of a class says of an object or class where the method is the program's own;
/// null: it is none.
Value asked_metaclass(Interpreter& interpreter, const Value& of, const char* method,
                      const Value& value);

/// Whether objects of the class are of the other, for which it is asked without running code of a
/// metaclass of the program's. `instance`: one of them, if there is one already.
bool has_instances_of(Interpreter& interpreter, PyTypeObject* type, PyObject* of,
                      PyObject* instance);

/// issubclass, also without such code.
bool is_subclass(Interpreter& interpreter, PyTypeObject* type, PyObject* of);

}  // namespace janus::frontend
