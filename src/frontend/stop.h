// Exceptions that the caller of a function waits for: a `for` that asks `__next__` or `__getitem__`
// for the next element.
#pragma once

#include <string>

#include "frontend/interpreter.h"

namespace janus::frontend {

/// What a function gives in place of raising the exception, as its Frame::at_stop.
Value stop_by(PyObject* exception);
bool is_stop_by(const Value& stop, PyObject* exception);

/// Leaves the function at hand, for its Frame::at_stop, from inside of an expression.
struct Stopped {};

/// Whether the exception, raised in the frame, leaves the function so. Inside of a branch or loop
/// of the graph only one way through it would.
bool is_awaited(const Frame& frame, size_t open_scopes, PyObject* exception);

/// The program raises that here: gives up, unless the caller of the function at hand waits for it.
[[noreturn]] void raise(Interpreter& interpreter, PyObject* exception, std::string details);

}  // namespace janus::frontend
