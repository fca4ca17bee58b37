#include "frontend/control/list_reductions.h"

#include "frontend/control/counted.h"
#include "frontend/control/loops.h"
#include "frontend/control/python_sum.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_of.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/truth.h"
#include "python/version.h"

namespace janus::frontend {

using syntax::CompareOperator;
using syntax::Operator;

namespace {

/// Takes the elements of `rest`, one by one.
Value accumulate_rest(Interpreter& interpreter, const TestKey& test, ElementList elements,
                      const Value& start, const Step& step) {
  auto rest = std::make_shared<Sequence>(true);
  rest->elements = std::move(elements);
  auto state = std::make_shared<Variables>();
  state->values["total"] = start;
  LoopParts parts;
  parts.test = [&] {
    return truth_of(interpreter, compare(interpreter, CompareOperator::Gt,
                                         length_of(interpreter, *rest->elements.rolled()),
                                         interpreter.integer(0)));
  };
  parts.iteration = [&] {
    auto next = popped(interpreter, *rest->elements.rolled(), true);
    rest->elements = ElementList(next->rest);
    state->values["total"] = step(state->values["total"], next->element);
    return Completion::normal;
  };
  parts.may_be_empty = true;
  loop_in_graph(interpreter, test, parts);
  return state->values["total"];
}

/// Whether the list has elements: known, or guarded.
bool is_filled(Interpreter& interpreter, const Rolled& list) {
  const Truth some =
      truth_of(interpreter, compare(interpreter, CompareOperator::Gt, length_of(interpreter, list),
                                    interpreter.integer(0)));
  return some.known ? *some.known
                    : interpreter.follow(some.flag, python::Object::borrow(Py_True), -1);
}

}  // namespace

Value accumulated(Interpreter& interpreter, const Rolled& list, const Value& start,
                  const Step& step) {
  return accumulate_rest(interpreter, list.test, ElementList(facing(interpreter, list, true)),
                         start, step);
}

Value accumulated_from_first(Interpreter& interpreter, const Rolled& list,
                             const std::function<Value(const Value&)>& begin, const Step& step) {
  if (!is_filled(interpreter, list)) return nullptr;
  auto first = popped(interpreter, *facing(interpreter, list, true), true);
  return accumulate_rest(interpreter, list.test, ElementList(first->rest), begin(first->element),
                         step);
}

Value list_of_numbers(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  const TestKey test{python::Object::steal(PyUnicode_InternFromString("tolist")), -1};
  if (!interpreter.merges() || interpreter.followed(test) != nullptr) return nullptr;
  auto list = std::make_shared<Sequence>(true);
  Counted rows;
  rows.lengths = {interpreter.dimension(tensor->value->type.shape[0])};
  rows.element = [&](const Value& at) {
    const auto row = shared_as<Tensor>(index_tensor(interpreter, tensor, at));
    return item(interpreter, *row);
  };
  append_counted(interpreter, test, *list, rows, true);
  return list;
}

namespace {

/// A list of floats, where Python's `sum` keeps account of what it rounds away.
Value sum_of_floats(Interpreter& interpreter, const Rolled& list, const Value& start) {
  const auto pair = [](const FloatSum& sum) { return make_tuple({sum.total, sum.lost}); };
  const auto sum_in = [](const Value& pair) -> FloatSum {
    const auto& parts = as<Sequence>(pair)->elements.known();
    return {parts[0], parts[1]};
  };
  const Step add = [&](const Value& sum, const Value& element) {
    return pair(added(interpreter, sum_in(sum), element));
  };
  if (class_of(start) == &PyFloat_Type)
    return whole(interpreter,
                 sum_in(accumulated(interpreter, list, pair(float_sum(interpreter, start)), add)));
  if (!is_filled(interpreter, list)) return start;
  auto first = popped(interpreter, *facing(interpreter, list, true), true);
  const Value begin = binary(interpreter, Operator::Add, start, first->element);
  const Value rest = accumulate_rest(interpreter, list.test, ElementList(first->rest),
                                     pair(float_sum(interpreter, begin)), add);
  return whole(interpreter, sum_in(rest));
}

/// Whether Python's `sum` keeps account of what it rounds away.
bool is_sum_of_floats(const Rolled& list, const Value& start) {
  if (!python::kCompensatesSums || list.form.kind != ElementForm::Kind::number) return false;
  const bool starts_with_float = class_of(start) == &PyFloat_Type;
  if (list.form.type == graph::Type::f64())
    return starts_with_float || class_of(start) == &PyLong_Type;
  return python::kCompensatesIntsInSums && starts_with_float;
}

}  // namespace

Value sum(Interpreter& interpreter, const Rolled& list, const Value& start) {
  if (is_sum_of_floats(list, start)) return sum_of_floats(interpreter, list, start);
  if (list.form.kind == ElementForm::Kind::tuple || list.form.kind == ElementForm::Kind::object)
    return nullptr;
  const Step add = [&](const Value& total, const Value& element) {
    return binary(interpreter, Operator::Add, total, element);
  };
  const bool may_be_empty = list.form.kind == ElementForm::Kind::number && is_number(start) &&
                            interpreter.graph_value(start)->type == list.form.type;
  if (may_be_empty) return accumulated(interpreter, list, start, add);
  if (!is_filled(interpreter, list)) return start;
  auto first = popped(interpreter, *facing(interpreter, list, true), true);
  return accumulate_rest(interpreter, list.test, ElementList(first->rest),
                         add(start, first->element), add);
}

Value total_of(Interpreter& interpreter, const Rolled& list) {
  Value total = accumulated_from_first(
      interpreter, list, [](const Value& first) { return first; },
      [&](const Value& so_far, const Value& element) {
        return binary(interpreter, Operator::Add, so_far, element);
      });
  if (total == nullptr)
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: stack of no tensors");
  return total;
}

}  // namespace janus::frontend
