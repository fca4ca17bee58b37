// Exceptions of the program as values.
#pragma once

#include "frontend/values/value.h"
#include "python/object.h"

namespace janus::frontend {

/// Thrown where an expression raises, up to the statement around it.
struct Raised {
  Value exception;
};

/// One that Python's own code has raised.
Value exception_of(const python::Object& type, const python::Object& exception);
bool is_exception(const Value& value);
/// The class of one.
PyObject* class_of_exception(const Value& exception);

/// `exception.args`; null: not known.
Value arguments_of_exception(const Instance& exception);
void set_exception_arguments(Instance& exception, const Value& arguments);

}  // namespace janus::frontend
