#include "frontend/core/flags.h"

#include "frontend/core/interpreter.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

Value flag_value(ValueMaker& maker, const Truth& truth) {
  if (truth.known) return maker.boolean(*truth.known);
  return maker.number(truth.flag, truth.example);
}

Truth negated(Guards& guards, Truth truth) {
  if (truth.known) return {.known = !*truth.known};
  truth.flag = guards.negated_flag(truth.flag);
  if (truth.example) truth.example = Object::borrow(truth.example.is(Py_True) ? Py_False : Py_True);
  return truth;
}

Value either_flag(Interpreter& interpreter, const Value& a, const Value& b) {
  for (const auto& [flag, other] : {std::pair(a, b), std::pair(b, a)})
    if (known_object(flag) != nullptr) return known_object(flag) == Py_True ? flag : other;
  return interpreter.number(op::scalar_or(
      interpreter.builder(), {interpreter.graph_value(a), interpreter.graph_value(b)}));
}

Value both_flags(Interpreter& interpreter, const Value& a, const Value& b) {
  for (const auto& [flag, other] : {std::pair(a, b), std::pair(b, a)})
    if (known_object(flag) != nullptr) return known_object(flag) == Py_True ? other : flag;
  return interpreter.number(op::scalar_and(
      interpreter.builder(), {interpreter.graph_value(a), interpreter.graph_value(b)}));
}

bool decide(Guards& guards, const Truth& truth, int fact) {
  return truth.known ? *truth.known : guards.follow(truth.flag, truth.example, fact);
}

}  // namespace janus::frontend
