// A position that only the run knows is followed with a guard, or chosen among numbers in the
// graph.
#include "frontend/objects/lists.h"

#include "base/policy.h"
#include "frontend/control/effects.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/folding.h"
#include "frontend/values/number_kinds.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

namespace {

/// The number of the call at hand, with a guard that it is the same.
Object specialised(Interpreter& interpreter, const Value& index) {
  const auto& number = *as<Number>(index);
  if (!number.example || number.type == Type::Kind::f64)
    interpreter.refuse(ReasonCode::dynamic_value, "an index that only the run knows");
  Value same = compare(interpreter, syntax::CompareOperator::Eq, index,
                       interpreter.constant(number.example));
  truth(interpreter, same, -1);
  return number.example;
}

bool are_numbers_of_one_type(ValueMaker& maker, const std::vector<Value>& elements) {
  std::optional<Type> type;
  for (const Value& element : elements) {
    if (!is_number(element)) return false;
    const Type& other = maker.graph_value(element)->type;
    if (type && *type != other) return false;
    type = other;
  }
  return true;
}

}  // namespace

Value element_at(Interpreter& interpreter, const std::vector<Value>& elements, const Value& index) {
  const auto* number = as<Number>(index);
  if (number == nullptr || number->type != Type::Kind::i64) return nullptr;
  if (elements.empty() || elements.size() > policy::kMostChosen) return nullptr;
  if (!are_numbers_of_one_type(interpreter, elements)) return nullptr;
  graph::Builder& builder = interpreter.builder();
  graph::Value* position = interpreter.graph_value(index);
  graph::Value* zero = builder.constant(int64_t{0});
  graph::Value* length = builder.constant(static_cast<int64_t>(elements.size()));
  // Negative ones count from the end.
  position = op::scalar_select(builder, {op::scalar_lt(builder, {position, zero}),
                                         op::scalar_add(builder, {position, length}), position});
  graph::Value* fits = op::scalar_and(builder, {op::scalar_ge(builder, {position, zero}),
                                                op::scalar_lt(builder, {position, length})});
  interpreter.follow(fits, Object::borrow(Py_True), -1);
  graph::Value* chosen = interpreter.graph_value(elements.back());
  for (size_t i = elements.size() - 1; i-- > 0;) {
    graph::Value* is_it =
        op::scalar_eq(builder, {position, builder.constant(static_cast<int64_t>(i))});
    chosen = op::scalar_select(builder, {is_it, interpreter.graph_value(elements[i]), chosen});
  }
  return interpreter.number(chosen);
}

size_t checked_index(Interpreter& interpreter, const Sequence& sequence, const Value& key) {
  Object object =
      as<Number>(key) != nullptr ? specialised(interpreter, key) : folded(interpreter, key);
  Object index = interpreter.must(PyNumber_Index(object.get()));
  Py_ssize_t position = PyLong_AsSsize_t(index.get());
  if (position == -1 && PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  auto length = static_cast<Py_ssize_t>(sequence.elements.size());
  if (position < 0) position += length;
  if (position < 0 || position >= length)
    raise(interpreter, PyExc_IndexError, "IndexError: index out of range");
  return static_cast<size_t>(position);
}

SliceRange slice_range(Interpreter& interpreter, const SliceValue& slice, size_t length) {
  auto shared = std::make_shared<SliceValue>();
  shared->start = slice.start;
  shared->stop = slice.stop;
  shared->step = slice.step;
  Object object = folded(interpreter, shared);
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(object.get(), &start, &stop, &step) < 0) interpreter.refuse_raised();
  Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(length), &start, &stop, step);
  return {start, step, count};
}

Sequence* changing_list(Interpreter& interpreter, const Value& value) {
  Value shadow = value;
  if (const auto* known = as<Known>(value);
      known != nullptr && (PyList_CheckExact(known->object.get()) || is_deque(known->object.get())))
    shadow = opened(interpreter, value);
  auto* sequence = as<Sequence>(shadow);
  return sequence != nullptr && sequence->is_list ? sequence : nullptr;
}

void note_list_change(Interpreter& interpreter, const Sequence& list) {
  if (list.source == nullptr) return;
  interpreter.heap.note_change();
  interpreter.mark(speculate::LineMark::Kind::effect);
}

}  // namespace janus::frontend
