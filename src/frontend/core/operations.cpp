#include "frontend/core/operations.h"

#include "base/check.h"
#include "frontend/core/flags.h"
#include "frontend/core/interpreter.h"

namespace janus::frontend {

namespace {

Operations table{};

}  // namespace

void set_operations(const Operations& operations) { table = operations; }

Value call(Interpreter& interpreter, const Value& callee, const CallArguments& arguments) {
  return table.call(interpreter, callee, arguments);
}

Value binary(Interpreter& interpreter, syntax::Operator op, const Value& left, const Value& right) {
  return table.binary(interpreter, op, left, right);
}

Value compare(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
              const Value& right) {
  return table.compare(interpreter, op, left, right);
}

bool identical(Interpreter& interpreter, const Value& left, const Value& right) {
  return table.identical(interpreter, left, right);
}

Truth truth_of(Interpreter& interpreter, const Value& value) {
  return table.truth_of(interpreter, value);
}

bool truth(Interpreter& interpreter, const Value& value, int fact) {
  return decide(interpreter, truth_of(interpreter, value), fact);
}

bool holds(Interpreter& interpreter, const Value& left, syntax::CompareOperator op,
           const Value& right) {
  return truth(interpreter, compare(interpreter, op, left, right), -1);
}

Value opened(Interpreter& interpreter, const Value& value) {
  return table.opened(interpreter, value);
}

std::vector<Value> elements_of(Interpreter& interpreter, const Value& value) {
  return table.elements_of(interpreter, value);
}

Value call_decorated(Interpreter& interpreter, const Known& function,
                     const CallArguments& arguments) {
  return table.call_decorated(interpreter, function, arguments);
}

Value call_on_list(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) {
  return table.call_on_list(interpreter, callable, arguments);
}

void switch_requires_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                          bool wanted) {
  table.switch_requires_grad(interpreter, tensor, wanted);
}

speculate::Template make_template(Interpreter& interpreter, const Value& value) {
  return table.make_template(interpreter, value);
}

}  // namespace janus::frontend
