// What operands of Python's operators are.
#pragma once

#include <optional>

#include "frontend/values/value.h"

namespace janus::frontend {

/// Whether the value is an immutable object that is known now.
bool is_constant(const Value& value);

bool is_string(const Value& value);

/// What the number is in the call at hand; null if only the run knows.
python::Object example_of(const Value& value);

/// The number as a dimension, if it is one.
std::optional<graph::Dim> dim_of(const Value& value);

/// The method that compares objects of classes: "__eq__", ... of an operator that has one.
const char* comparison_method(syntax::CompareOperator op);

/// The comparison with its sides exchanged: `<` for `>`.
syntax::CompareOperator reflected(syntax::CompareOperator op);

}  // namespace janus::frontend
