// Calls of classes that exist before the call: enumerations, named tuples, exceptions, torch's
// constants, and classes whose objects are kept as their attributes (objects/instances.h).
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Calls the class; refuses if its objects can't be kept.
Value call_class(Interpreter& interpreter, const Known& known, const CallArguments& arguments);
/// Calls the `__new__` that collections.namedtuple wrote for a class, with all fields, for that
/// class or one derived from it; null if the function is another one.
Value call_namedtuple_constructor(Interpreter& interpreter, PyObject* function,
                                  const CallArguments& arguments);

}  // namespace janus::frontend
