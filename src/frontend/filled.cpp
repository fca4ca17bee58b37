#include "frontend/filled.h"

#include <algorithm>

#include "frontend/operators.h"
#include "frontend/tensor.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::DType;
using syntax::Operator;

bool may_be_filled(const Value& number, const Value& tensor) {
  PyObject* const known = known_object(number);
  const auto* of = as<Tensor>(tensor);
  if (known == nullptr || of == nullptr || of->value == nullptr) return false;
  const DType dtype = of->value->type.dtype;
  // A tensor of half precision would round the number.
  return (PyLong_CheckExact(known) || PyFloat_CheckExact(known)) &&
         (dtype == DType::f32 || dtype == DType::f64) && !of->is_parameter &&
         of->source == nullptr && of->grad == nullptr && !(of->requires_grad && of->is_leaf);
}

graph::Value* filled_with(Interpreter& interpreter, const Value& number, const graph::Type& type) {
  const double value = PyFloat_AsDouble(known_object(number));
  if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  graph::Builder& builder = interpreter.builder();
  return op::full(builder, {builder.constant(value)},
                  {{"size", type.shape}, {"dtype", type.dtype}});
}

namespace {

/// The tensor of a value that is a number or a tensor, where it is not known which; null for
/// others.
std::shared_ptr<Tensor> filled_tensor(const Interpreter& interpreter, const Value& value) {
  const auto* either = as<Either>(value);
  if (either == nullptr || interpreter.outcome_of(either->flag)) return nullptr;
  return shared_as<Tensor>(either->if_true);
}

/// Whether an operator on both gives a tensor of the first one's form, as it does for a number.
bool takes_form_of(const Tensor& whole, const Tensor& part) {
  const graph::Shape &shape = whole.value->type.shape, &other = part.value->type.shape;
  return whole.value->type.dtype == part.value->type.dtype && other.size() <= shape.size() &&
         std::equal(other.rbegin(), other.rend(), shape.rbegin(),
                    [](const graph::Dim& a, const graph::Dim& b) { return a == b || a.is(1); });
}

}  // namespace

Value filled_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  if (op != Operator::Add && op != Operator::Sub && op != Operator::Mult) return nullptr;
  const auto first = filled_tensor(interpreter, left), second = filled_tensor(interpreter, right);
  if ((first == nullptr) == (second == nullptr)) return nullptr;
  const auto part = first != nullptr ? first : second;
  const auto* whole = as<Tensor>(first != nullptr ? right : left);
  if (whole == nullptr || !takes_form_of(*whole, *part)) return nullptr;
  if (part->requires_grad && !whole->requires_grad) interpreter.gradients_vary = true;
  return first != nullptr ? binary(interpreter, op, first, right)
                          : binary(interpreter, op, left, second);
}

Value filled_binary_in_place(Interpreter& interpreter, Operator op, const Value& left,
                             const Value& right) {
  const auto part = filled_tensor(interpreter, left);
  const auto* added = as<Tensor>(right);
  const bool fits = part != nullptr && added != nullptr && op == Operator::Add &&
                    added->value->type == part->value->type;
  if (!fits) return filled_binary(interpreter, op, left, right);
  if (part->requires_grad && !added->requires_grad) interpreter.gradients_vary = true;
  return binary_in_place(interpreter, op, part, right);
}

}  // namespace janus::frontend
