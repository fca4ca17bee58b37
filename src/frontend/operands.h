// What operands of Python's operators are (the inside of operators.h).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "frontend/interpreter.h"

namespace janus::frontend {

/// Whether the value is an immutable object that is known now.
bool is_constant(const Value& value);
bool is_string(const Value& value);
/// What the number is in the call at hand; null if only the run knows.
python::Object example_of(const Value& value);
/// The number as a dimension, if it is one.
std::optional<graph::Dim> dim_of(const Value& value);
/// The members of an enumeration of ints compute as these, if their class leaves the methods to
/// int.
Value plain_number(Interpreter& interpreter, const Value& value,
                   std::initializer_list<std::string> methods);

}  // namespace janus::frontend
