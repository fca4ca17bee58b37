#include "frontend/control/slice_positions.h"

#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Whether `left` is at least `right`: followed as it is in the call at hand; where only the run
/// knows, it is taken to be so.
bool is_at_least(Interpreter& interpreter, const Value& left, const Value& right) {
  const Truth truth =
      truth_of(interpreter, compare(interpreter, syntax::CompareOperator::GtE, left, right));
  if (truth.known) return *truth.known;
  const Object example = truth.example ? truth.example : Object::borrow(Py_True);
  return interpreter.follow(truth.flag, example, -1);
}

/// A bound of a slice as a position from 0 to the length; null if it is no number.
Value position_of_bound(Interpreter& interpreter, const Value& bound, const Value& length,
                        const Value& otherwise) {
  if (is_none(bound)) return otherwise;
  if (class_of(bound) != &PyLong_Type) return nullptr;
  const Value zero = interpreter.integer(0);
  Value place = bound;
  if (!is_at_least(interpreter, place, zero)) {
    place = binary(interpreter, syntax::Operator::Add, place, length);
    if (!is_at_least(interpreter, place, zero)) return zero;
  }
  return is_at_least(interpreter, length, place) ? place : length;
}

/// How many elements there are between two positions, as it is in the call at hand: guarded.
/// Nothing if only the run knows.
std::optional<int64_t> known_distance(Interpreter& interpreter, const Value& start,
                                      const Value& stop) {
  const auto as_int = [](PyObject* object) -> std::optional<int64_t> {
    const int64_t number = PyLong_AsLongLong(object);
    PyErr_Clear();
    return number;
  };
  // `data[i:i + 4]` of an `i` that the run draws.
  if (const auto *first = as<Number>(start), *last = as<Number>(stop);
      first != nullptr && last != nullptr && last->value != nullptr && !last->dim) {
    const graph::Node* sum = last->value->definition;
    const graph::Node* added =
        sum != nullptr && sum->op == &op::scalar_add && sum->inputs[0] == first->value
            ? sum->inputs[1]->definition
            : nullptr;
    if (added != nullptr && added->op == &op::constant)
      return added->attributes.get<int64_t>("value");
  }
  const Value distance = binary(interpreter, syntax::Operator::Sub, stop, start);
  if (PyObject* const known = known_object(distance)) return as_int(known);
  const auto* number = as<Number>(distance);
  if (number == nullptr || !number->example) return std::nullopt;
  const Value same = compare(interpreter, syntax::CompareOperator::Eq, distance,
                             interpreter.constant(number->example));
  if (as<Known>(same) == nullptr)
    interpreter.follow(interpreter.graph_value(same), Object::borrow(Py_True), -1);
  return as_int(number->example.get());
}

}  // namespace

std::optional<std::vector<Value>> slice_positions(Interpreter& interpreter, const SliceValue& slice,
                                                  const Value& length) {
  if (!is_none(slice.step)) return std::nullopt;
  const Value start = position_of_bound(interpreter, slice.start, length, interpreter.integer(0));
  const Value stop = position_of_bound(interpreter, slice.stop, length, length);
  if (start == nullptr || stop == nullptr) return std::nullopt;
  const std::optional<int64_t> count = known_distance(interpreter, start, stop);
  if (!count || *count > Interpreter::most_rounds()) return std::nullopt;
  std::vector<Value> positions;
  for (int64_t i = 0; i < *count; ++i)
    positions.push_back(binary(interpreter, syntax::Operator::Add, start, interpreter.integer(i)));
  return positions;
}

}  // namespace janus::frontend
