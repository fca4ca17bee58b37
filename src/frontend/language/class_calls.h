// Calls of classes that exist before the call: enumerations, named tuples, exceptions, torch's
// constants, and classes whose objects are kept as their attributes (objects/instances.h).
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Calls the class; refuses if its objects can't be kept.
Value call_class(Interpreter& interpreter, const Known& known, const CallArguments& arguments);

}  // namespace janus::frontend
