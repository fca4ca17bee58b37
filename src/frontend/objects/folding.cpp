// Folds part by part; what exists before the call is assumed to stay the same object.
#include "frontend/objects/folding.h"

#include <algorithm>

#include "frontend/core/class_entry.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/nesting.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/protocol.h"
#include "frontend/values/constants.h"
#include "frontend/values/identity_number.h"
#include "python/origin.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Whether a conversion of the object by Python's own functions would run code of the program.
bool is_computed_by_program(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || is_enumeration(type)) return false;
  const Value value = std::make_shared<Known>(Object::borrow(object), nullptr);
  return std::ranges::any_of(
      std::initializer_list<const char*>{"__index__", "__int__", "__float__", "__complex__",
                                         "__floor__", "__ceil__", "__trunc__", "__round__",
                                         "__str__", "__repr__", "__format__"},
      [&](const char* method) { return has_written(value, method); });
}

/// The view as an object of Python's, of a dict whose parts are known.
Object folded_view(Interpreter& interpreter, const Sequence& view) {
  const Object dict = interpreter.must(PyDict_New());
  for (const auto& [key, value] : view.viewed->items) {
    const Object held = view.part == "keys" ? Object::borrow(Py_None) : folded(interpreter, value);
    if (PyDict_SetItem(dict.get(), key.get(), held.get()) < 0) interpreter.refuse_raised();
  }
  if (view.viewed->type)
    interpreter.refuse(ReasonCode::dynamic_value, "a view of a dict of another class");
  return interpreter.must(PyObject_CallMethod(dict.get(), view.part.c_str(), nullptr));
}

/// The elements of the sequence as an object of its class. A named tuple's class itself takes them
/// one by one.
Object tuple_of_class(Interpreter& interpreter, const Sequence& sequence, Object elements) {
  if (!sequence.type) return elements;
  auto* const type = reinterpret_cast<PyTypeObject*>(sequence.type.get());
  if (tuple_fields(type) == nullptr)
    return interpreter.must(PyObject_CallOneArg(sequence.type.get(), elements.get()));
  const Object arguments = interpreter.must(PyTuple_Pack(1, elements.get()));
  return interpreter.must(PyTuple_Type.tp_new(type, arguments.get(), nullptr));
}

/// Whether a dict finds the tuple by the contents of its elements alone.
bool is_tuple_of_constants(PyObject* object) {
  return is_tuple_like(object) &&
         std::ranges::all_of(python::elements(object), [](const Object& element) {
           return is_immutable_constant(element.get());
         });
}

/// Whether a dict finds the object by code of C that reads nothing but its immutable contents: that
/// of a class derived from a text or number, or of a plain enumeration.
bool is_key_by_contents(Interpreter& interpreter, PyObject* object) {
  static PyObject* const of_enumeration = imported("enum.Enum.__hash__");
  PyTypeObject* const type = Py_TYPE(object);
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return false;
  PyObject* const hash = class_entry(interpreter, type, "__hash__");
  PyObject* const equal = class_entry(interpreter, type, "__eq__");
  if (is_method_of_contents(hash) && is_method_of_contents(equal)) return true;
  return hash == of_enumeration && python::is_made_by(hash, "enum") &&
         type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

}  // namespace

Object folded(Interpreter& interpreter, const Value& value) {
  const Nesting deeper(interpreter);
  if (const auto* known = as<Known>(value)) {
    if (known->source != nullptr && !is_immutable_constant(known->object.get())) {
      Value shadow = opened(interpreter, value);
      if (shadow != value) return folded(interpreter, shadow);
      if (PySet_Check(known->object.get()))
        interpreter.refuse(ReasonCode::dynamic_value, "the elements of a set");
      if (PyList_Check(known->object.get()) || PyDict_Check(known->object.get()))
        interpreter.refuse(ReasonCode::dynamic_value, "what a container of a derived class holds");
      interpreter.assume_identity(*known);
    }
    if (is_computed_by_program(known->object.get()))
      interpreter.refuse(ReasonCode::dynamic_value,
                         "an object whose class defines its conversions");
    return known->object;
  }
  if (is_view(value)) return folded_view(interpreter, *as<Sequence>(value));
  if (const auto* sequence = as<Sequence>(value); sequence != nullptr && !is_deque(*sequence)) {
    Object list = interpreter.must(PyList_New(0));
    for (const Value& element : sequence->elements)
      if (PyList_Append(list.get(), folded(interpreter, element).get()) < 0)
        interpreter.refuse_raised();
    if (sequence->is_list) return list;
    return tuple_of_class(interpreter, *sequence, interpreter.must(PyList_AsTuple(list.get())));
  }
  if (const auto* slice = as<SliceValue>(value))
    return interpreter.must(PySlice_New(folded(interpreter, slice->start).get(),
                                        folded(interpreter, slice->stop).get(),
                                        folded(interpreter, slice->step).get()));
  if (const auto* dictionary = as<Dictionary>(value); dictionary != nullptr && !dictionary->type) {
    Object dict = interpreter.must(PyDict_New());
    for (const auto& [key, element] : dictionary->items)
      if (PyDict_SetItem(dict.get(), key.get(), folded(interpreter, element).get()) < 0)
        interpreter.refuse_raised();
    return dict;
  }
  if (const auto* set = as<SetValue>(value)) {
    if (!set->only_grew && set->elements.size() > 1)
      interpreter.refuse(ReasonCode::dynamic_value, "the order of a set's elements");
    Object result =
        interpreter.must(set->is_frozen ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
    for (const Value& element : set->elements)
      if (PySet_Add(result.get(), key_object(interpreter, element).get()) < 0)
        interpreter.refuse_raised();
    return result;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a value that only the run knows");
}

Object key_object(Interpreter& interpreter, const Value& value) {
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    // Hashing an object of a user's class would run its code.
    bool plain = is_immutable_constant(object) || PyType_Check(object) ||
                 PyFunction_Check(object) || PyCFunction_Check(object) || PyModule_Check(object) ||
                 is_torch_constant(object) || is_identity_number(object) ||
                 is_tuple_of_constants(object) ||
                 Py_TYPE(object)->tp_hash == PyBaseObject_Type.tp_hash ||
                 is_key_by_contents(interpreter, object);
    if (plain) {
      if (!PyType_Check(object))
        assume_entries(interpreter, Py_TYPE(object), {"__eq__", "__hash__"});
      interpreter.assume_identity(*known);
      return known->object;
    }
  }
  if (is_view(value)) raise(interpreter, PyExc_TypeError, "TypeError: a view is not hashable");
  if (const auto* sequence = as<Sequence>(value); sequence != nullptr && !sequence->is_list) {
    Object tuple = interpreter.must(PyTuple_New(Py_ssize_t(sequence->elements.size())));
    for (size_t i = 0; i < sequence->elements.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i),
                       key_object(interpreter, sequence->elements[i]).release());
    return tuple_of_class(interpreter, *sequence, std::move(tuple));
  }
  if (const auto* tensor = as<Tensor>(value); tensor != nullptr && tensor->source != nullptr) {
    // Tensors are hashed by identity.
    interpreter.assume(Assumption::Kind::identity, tensor->source, tensor->object);
    return tensor->object;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a key");
}

}  // namespace janus::frontend
