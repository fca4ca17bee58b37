// Python's operators on known objects, numbers, tensors and virtual containers.
#pragma once

#include <initializer_list>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// left op= right: gives what the target is bound to.
Value binary_in_place(Interpreter& interpreter, syntax::Operator op, const Value& left,
                      const Value& right);
Value unary(Interpreter& interpreter, syntax::UnaryOperator op, const Value& operand);

/// int(x), float(x), bool(x) of a number that the graph computes.
Value convert_number(Interpreter& interpreter, const Value& number, graph::Type::Kind kind);

/// The members of an enumeration of ints compute as these, if their class leaves the methods to
/// int.
Value plain_number(Interpreter& interpreter, const Value& value,
                   std::initializer_list<std::string> methods);

/// Implements binary() of core/operations.h.
Value compute_binary(Interpreter& interpreter, syntax::Operator op, const Value& left, const Value& right);

/// Implements compare() of core/operations.h.
Value compare_values(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
              const Value& right);

/// Implements identical() of core/operations.h.
bool are_identical(Interpreter& interpreter, const Value& left, const Value& right);

}  // namespace janus::frontend
