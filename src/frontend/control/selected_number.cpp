#include "frontend/control/selected_number.h"

#include "frontend/values/number_kinds.h"
#include "frontend/values/operands.h"
#include "ops/list.h"

namespace janus::frontend {

Value selected(Interpreter& interpreter, const Value& test, const Value& yes, const Value& no) {
  const auto* flag = as<Number>(test);
  if (flag == nullptr || !is_number(yes) || !is_number(no)) return nullptr;
  graph::Value *first = interpreter.graph_value(yes), *second = interpreter.graph_value(no);
  if (first->type != second->type) return nullptr;
  python::Object example;
  if (flag->example) {
    // An int stays what it is made of: it may be a size.
    if (first->type != graph::Type::f64()) return nullptr;
    example = example_of(flag->example.is(Py_True) ? yes : no);
  }
  return interpreter.number(
      op::scalar_select(interpreter.builder(), {interpreter.graph_value(test), first, second}),
      std::move(example));
}

}  // namespace janus::frontend
