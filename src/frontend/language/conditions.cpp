// The operands of `and`, `or` and `not` are looked at one by one, so that each outcome is compared
// with what was counted for it.
#include "frontend/language/conditions.h"

#include "frontend/control/branches.h"
#include "frontend/control/optional.h"
#include "frontend/control/run_time_items.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/flags.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/numbers.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/lengths.h"
#include "frontend/objects/protocol.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/symbolic_list.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The truth of an object that exists before the call, by its class.
bool object_truth(Interpreter& interpreter, const Value& value) {
  const auto& known = *as<Known>(value);
  PyObject* object = known.object.get();
  if (is_immutable_constant(object)) {
    int truth = PyObject_IsTrue(object);
    if (truth < 0) interpreter.refuse_raised();
    return truth == 1;
  }
  if (std::optional<bool> filled = container_truth(interpreter, value)) return *filled;
  PyTypeObject* type = Py_TYPE(object);
  PyNumberMethods* number = type->tp_as_number;
  bool has_bool = number != nullptr && number->nb_bool != nullptr;
  bool has_length = (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_length != nullptr) ||
                    (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_length != nullptr);
  if (!has_bool) assume_entries(interpreter, type, {"__bool__"});
  if (!has_length) assume_entries(interpreter, type, {"__len__"});
  if (!has_bool && !has_length) return true;
  if (has_bool) {
    Value method = special_method(interpreter, value, "__bool__");
    if (method == nullptr) return true;
    return truth(interpreter, called_bool(interpreter, method), -1);
  }
  return truth(interpreter, length_of(interpreter, value), -1);
}

}  // namespace

Truth compute_truth(Interpreter& interpreter, const Value& value) {
  const auto flag_of_one = [&](const Value& one) {
    return flag_value(interpreter, truth_of(interpreter, one));
  };
  if (const Value flag = for_both(interpreter, value, flag_of_one))
    return truth_of(interpreter, flag);
  switch (value->kind) {
    case ValueKind::known:
      return {.known = object_truth(interpreter, value)};
    case ValueKind::number: {
      auto& number = *as<Number>(value);
      Value flag = number.type == graph::Type::Kind::boolean
                       ? value
                       : convert_number(interpreter, value, graph::Type::Kind::boolean);
      if (const auto* known = as<Known>(flag)) return {.known = known->object.is(Py_True)};
      Object example = as<Number>(flag)->example;
      if (example) {
        int outcome = PyObject_IsTrue(example.get());
        if (outcome < 0) interpreter.refuse_raised();
        example = Object::borrow(outcome == 1 ? Py_True : Py_False);
      }
      return {.flag = interpreter.graph_value(flag), .example = example};
    }
    case ValueKind::run_time:
      return truth_of(interpreter, run_time_truth(interpreter, *as<RuntimeObject>(value)));
    case ValueKind::tensor:
      return truth_of(interpreter, item(interpreter, *as<Tensor>(value)));
    case ValueKind::sequence:
      if (const Rolled* list = rolled(value))
        return truth_of(interpreter,
                        compare(interpreter, syntax::CompareOperator::Gt,
                                length_of(interpreter, *list), interpreter.integer(0)));
      if (is_view(value)) return {.known = !as<Sequence>(value)->viewed->items.empty()};
      return {.known = !as<Sequence>(value)->elements.empty()};
    case ValueKind::dictionary:
      return {.known = !as<Dictionary>(value)->items.empty()};
    case ValueKind::set:
      return {.known = !as<SetValue>(value)->elements.empty()};
    case ValueKind::instance:
      if (const Value method = special_method(interpreter, value, "__bool__"))
        return truth_of(interpreter, called_bool(interpreter, method));
      if (const Value method = special_method(interpreter, value, "__len__"))
        return truth_of(interpreter, called_length(interpreter, method));
      return {.known = true};
    case ValueKind::slice:
    case ValueKind::closure:
    case ValueKind::method:
    case ValueKind::iterator:
    case ValueKind::super:
    case ValueKind::native:
    case ValueKind::context:
      return {.known = true};
    case ValueKind::optional:
    case ValueKind::either:
      expect_narrowed(value);
      break;
    case ValueKind::deferred:
    case ValueKind::outcome:
    case ValueKind::undefined:
    case ValueKind::unmerged:
      break;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "the truth of a value made after the run");
}

namespace {

/// Whether outcomes of the test were counted.
bool is_counted(const Frames& frames, int fact) {
  const speculate::NodeFact* seen = frames.fact(fact);
  return seen != nullptr && (seen->taken > 0 || seen->not_taken > 0);
}

/// The operands from `index` on.
Truth operands_truth(Interpreter& interpreter, const syntax::BoolOp& expression, size_t index) {
  const syntax::Expression& operand = *expression.values[index];
  int fact = operand.fact;
  Truth first = evaluate_truth(interpreter, operand, fact);
  if (index + 1 == expression.values.size()) return first;
  interpreter.at(operand);
  bool stop_at = expression.op == syntax::BoolOperator::Or;
  if (first.known || !takes_both(interpreter, fact, first)) {
    if (decide(interpreter, first, fact) == stop_at) return {.known = stop_at};
    return operands_truth(interpreter, expression, index + 1);
  }
  auto stop = [&] { return interpreter.boolean(stop_at); };
  auto go_on = [&] {
    return flag_value(interpreter, operands_truth(interpreter, expression, index + 1));
  };
  Value result = stop_at ? choose(interpreter, first, fact, stop, go_on)
                         : choose(interpreter, first, fact, go_on, stop);
  return truth_of(interpreter, result);
}

}  // namespace

Truth evaluate_truth(Interpreter& interpreter, const syntax::Expression& expression, int& fact) {
  if (!is_counted(interpreter, fact)) fact = expression.fact;
  if (const auto* operation = syntax::try_as<syntax::BoolOp>(&expression))
    return operands_truth(interpreter, *operation, 0);
  if (const auto* operation = syntax::try_as<syntax::UnaryOp>(&expression);
      operation != nullptr && operation->op == syntax::UnaryOperator::Not) {
    int of_operand = operation->operand->fact;
    Truth operand = evaluate_truth(interpreter, *operation->operand, of_operand);
    interpreter.at(expression);
    // The outcomes may have been counted only at what is negated.
    if (!operand.known && !is_counted(interpreter, fact) &&
        !takes_both(interpreter, of_operand, operand))
      operand = {.known = decide(interpreter, operand, of_operand)};
    return negated(interpreter, operand);
  }
  Value value = evaluate(interpreter, expression);
  interpreter.at(expression);
  return truth_of(interpreter, value);
}

bool test(Interpreter& interpreter, const syntax::Expression& expression, int fact) {
  Truth truth = evaluate_truth(interpreter, expression, fact);
  return decide(interpreter, truth, fact);
}

}  // namespace janus::frontend
