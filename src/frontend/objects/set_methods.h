// Methods and operators of sets: those that the run makes and those that existed before the call.
#pragma once

#include <memory>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The method of a set that the run made; null if it has none of that name.
Value set_method(const std::shared_ptr<SetValue>& set, const std::string& name);

/// The method of a set that existed before the call; some do not look at what it holds.
Value real_set_method(const Value& self, const std::string& name);

/// Binary operators and comparisons of sets, and of views that Python takes for sets; null where
/// they are none.
Value set_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                 const Value& right);
Value set_binary_in_place(Interpreter& interpreter, syntax::Operator op, const Value& left,
                          const Value& right);
Value set_compare(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                  const Value& right);

}  // namespace janus::frontend
