// Values that are None in some runs and something else in others: what a branch left of which one
// side had None, the `.grad` of a parameter that one side uses; and values that are one of two.
//
// Where the program has asked (`if x is not None:`), the side at hand says which of the two it is.
// Whoever needs to know and can't, begins the generation anew with the branch followed.
#pragma once

#include "frontend/core/interpreter.h"
#include "frontend/values/element_list.h"
#include "frontend/values/value.h"

namespace janus::frontend {

/// What `use` makes of each of two values, merged behind a branch on which of them it is; null: the
/// value is no Either that is not narrowed here.
Value for_both(Interpreter& interpreter, const Value& value,
               const std::function<Value(const Value&)>& use);
/// The same of the first such one of two operands.
Value for_both(Interpreter& interpreter, const Value& left, const Value& right,
               const std::function<Value(const Value& left, const Value& right)>& use);
/// The same of the first such argument.
Value for_both(Interpreter& interpreter, const CallArguments& arguments,
               const std::function<Value(const CallArguments&)>& use);

/// Interprets `body` as what is done only where the flag holds. `key`: what is followed if that
/// can't be merged.
void only_if(Interpreter& interpreter, graph::Value* flag, const TestKey& key,
             const std::function<void()>& body);

}  // namespace janus::frontend
