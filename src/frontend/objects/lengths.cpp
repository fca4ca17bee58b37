// The length of a container that exists before the call is assumed, unless it varies from call to
// call.
#include "frontend/objects/lengths.h"

#include "frontend/control/entry_lists.h"
#include "frontend/control/run_time_items.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/operations.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/objects/protocol.h"
#include "frontend/objects/sets.h"
#include "frontend/values/constants.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"
#include "python/dict_keys.h"

namespace janus::frontend {

using python::Object;

namespace {

Value length_at_entry(Interpreter& interpreter, const Known& known) {
  Object length = interpreter.must(PyLong_FromSsize_t(PyObject_Size(known.object.get())));
  return interpreter.wrap(length.get(), length_path(interpreter, known.source));
}

}  // namespace

std::optional<bool> container_truth(Interpreter& interpreter, const Value& value) {
  const auto* known = as<Known>(value);
  if (known == nullptr || known->source == nullptr) return std::nullopt;
  PyObject* object = known->object.get();
  if (!PyList_CheckExact(object) && !is_plain_dict(object)) return std::nullopt;
  if (const Heap::List* list = interpreter.heap.list(object, known->source)) {
    if (list->shadow != nullptr && list->shadow->elements != list->at_entry)
      return !list->shadow->elements.empty();
    if (!list->appended->elements.empty()) return true;
  }
  if (interpreter.heap.table(object) != nullptr)
    return !as<Dictionary>(opened(interpreter, value))->items.empty();
  bool filled = PyObject_Size(object) > 0;
  interpreter.assume(Assumption::Kind::truth, known->source, {}, filled ? 1 : 0);
  return filled;
}

Value length_of(Interpreter& interpreter, const Value& value) {
  auto count = [&](size_t n) { return interpreter.integer(static_cast<int64_t>(n)); };
  if (const Rolled* list = rolled(value)) return length_of(interpreter, *list);
  if (const auto* sequence = as<Sequence>(value))
    return count(sequence->viewed ? sequence->viewed->items.size() : sequence->elements.size());
  if (const auto* dictionary = as<Dictionary>(value)) return count(dictionary->items.size());
  if (const auto* set = as<SetValue>(value)) return count(set->elements.size());
  if (const auto* tensor = as<Tensor>(value)) {
    if (tensor->value->type.rank() == 0)
      interpreter.refuse(ReasonCode::would_raise, "TypeError: len() of a 0-d tensor");
    return interpreter.dimension(tensor->value->type.shape[0]);
  }
  if (const auto* object = as<RuntimeObject>(value))
    return run_time_length(interpreter, *object, -1);
  if (as<Instance>(value) != nullptr)
    if (Value method = special_method(interpreter, value, "__len__"))
      return called_length(interpreter, method);
  if (has_written(value, "__len__"))
    return called_length(interpreter, special_method(interpreter, value, "__len__"));
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    bool builtin = PyList_CheckExact(object) || PyTuple_Check(object) || PyDict_Check(object) ||
                   PyAnySet_CheckExact(object);
    if (PySet_CheckExact(object) && known->source != nullptr)
      return interpreter.integer(set_length(interpreter, *known));
    if ((is_deque(object) && known->source != nullptr) || varying_list(interpreter, *known))
      return length_of(interpreter, opened(interpreter, value));
    const Heap::List* list = interpreter.heap.list(object, known->source);
    if (list != nullptr && list->shadow == nullptr && PyList_CheckExact(object)) {
      Value before = length_at_entry(interpreter, *known);
      note_length(interpreter, known->source);
      return binary(interpreter, syntax::Operator::Add, before,
                    length_of(interpreter, Value(list->appended)));
    }
    if (list != nullptr || interpreter.heap.table(object) != nullptr)
      if (Value shadow = opened(interpreter, value); shadow != value)
        return length_of(interpreter, shadow);
    if (known->source != nullptr && (PyList_CheckExact(object) || is_plain_dict(object)))
      return length_at_entry(interpreter, *known);
    if (builtin || is_immutable_constant(object) || PyRange_Check(object)) {
      Py_ssize_t length = PyObject_Size(object);
      if (length < 0) interpreter.refuse_raised();
      if (!is_immutable_constant(object))
        interpreter.assume(Assumption::Kind::length, known->source, {}, length);
      return interpreter.integer(length);
    }
    if (Value method = special_method(interpreter, value, "__len__"))
      return called_length(interpreter, method);
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a length");
}

}  // namespace janus::frontend
