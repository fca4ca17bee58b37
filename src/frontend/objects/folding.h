// Constant folding of containers: the Python object that a value of the run stands for, where all
// its parts are known.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The object that the value stands for; refuses where a part is not known.
python::Object folded(Interpreter& interpreter, const Value& value);

/// The hashable object that the value is as a key; refuses values of the graph, and keys whose
/// hash would run code of the program.
python::Object key_object(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
