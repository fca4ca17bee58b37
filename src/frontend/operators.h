// Python's operators on known objects, numbers, tensors and virtual containers.
#pragma once

#include "frontend/interpreter.h"

namespace janus::frontend {

Value binary(Interpreter& interpreter, syntax::Operator op, const Value& left, const Value& right);
/// left op= right: gives what the target is bound to.
Value binary_in_place(Interpreter& interpreter, syntax::Operator op, const Value& left,
                      const Value& right);
Value unary(Interpreter& interpreter, syntax::UnaryOperator op, const Value& operand);
Value compare(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
              const Value& right);
/// The method that compares objects of classes: "__eq__", ... of an operator that has one.
const char* comparison_method(syntax::CompareOperator op);

/// The comparison with its sides exchanged: `<` for `>`.
syntax::CompareOperator reflected(syntax::CompareOperator op);

/// left is right
bool identical(Interpreter& interpreter, const Value& left, const Value& right);
/// int(x), float(x), bool(x) of a number that the graph computes.
Value convert_number(Interpreter& interpreter, const Value& number, graph::Type::Kind kind);
/// Whether the value is a Python int, float or bool, known or not.
bool is_number(const Value& value);
/// Whether it is a bool that the graph has.
bool is_flag(const Value& value);

}  // namespace janus::frontend
