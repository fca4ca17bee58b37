// What an expression or a function gives that may raise.
#pragma once

#include <functional>

#include "frontend/values/value.h"

namespace janus::frontend {

class Frames;
class Interpreter;

/// What the body gives; null where it raises an exception of that class, which is `caught` then.
Value value_unless_raised(Frames& frames, PyObject* type, const std::function<Value()>& body,
                          Value* caught = nullptr);

/// What a call of a function gives where the function may raise: goes on with the side that
/// returns.
Value value_where_returned(Interpreter& interpreter, const Value& result);

}  // namespace janus::frontend
