#include "frontend/core/lifting.h"

#include <algorithm>

#include "frontend/core/local_functions.h"
#include "frontend/core/object_kinds.h"
#include "frontend/values/constants.h"
#include "speculate/tensor_access.h"
#include "syntax/source.h"

namespace janus::frontend {

using python::Object;

namespace {

bool holds_float(PyObject* object) {
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (PyFloat_CheckExact(PyTuple_GET_ITEM(object, i))) return true;
  return false;
}

/// Whether the function at this path is another one in each call, of the same code: what it refers
/// to is read by its path.
bool may_be_another(PyObject* function, const Source* source, const EntryFacts& facts,
                    const Heap& heap) {
  if (!is_local_function(function) || !facts.has_varied(source)) return false;
  // What the run writes to cells is known by the cell.
  return std::ranges::none_of(heap.table_order(), [&](PyObject* table) {
    return heap.table(table)->target.kind == speculate::HeapWrite::Kind::cell;
  });
}

/// Assumes what all functions of one definition have in common.
void assume_code(PyObject* function, const Source* source, Assumptions& assumptions,
                 GraphWriter& writer) {
  assumptions.assume(Assumption::Kind::identity, writer.sources().step(Source::Kind::code, source),
                     Object::borrow(syntax::original_code(PyFunction_GET_CODE(function))));
  const Object name = Object::borrow(python::interned("__globals__"));
  assumptions.assume(Assumption::Kind::identity,
                     writer.sources().step(Source::Kind::attribute, source, name),
                     Object::borrow(PyFunction_GET_GLOBALS(function)));
}

}  // namespace

Value Lifting::wrap(PyObject* object, const Source* source) {
  if (source == nullptr) return maker_.constant_borrowed(object);
  auto cached = wrapped_.find(source);
  if (cached != wrapped_.end()) return cached->second;
  Value value = wrap_new(object, source);
  wrapped_.emplace(source, value);
  return value;
}

Value Lifting::wrap_new(PyObject* object, const Source* source) {
  if (speculate::tensor_access().is_tensor(object)) return tensors_.wrap_tensor(object, source);
  if (attached_.recursion().is_run_time(source)) return wrap_run_time(object, source);
  Object owned = Object::borrow(object);
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object))
    return numbers_.wrap_number(object, source);
  Assumption::Kind kind = Assumption::Kind::exact_type;
  Object expected = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  // A text that is another one in each call is mostly only shown.
  if (PyUnicode_CheckExact(object) && facts_.has_varied(source))
    return wrap_run_time(object, source);
  if (is_immutable_constant(object)) {
    // A tuple with floats (an optimizer's betas) is taken apart: each may vary by itself.
    if (holds_float(object) || (PyTuple_CheckExact(object) && facts_.has_varied(source)))
      return wrap_varying_tuple(object, source);
    if (PyBool_Check(object) && source->kind == Source::Kind::index && facts_.has_varied(source))
      return numbers_.flag_input(object, source);
    kind = Assumption::Kind::equals;
    expected = owned;
  } else if (may_be_another(object, source, facts_, state_.heap)) {
    assume_code(object, source, assumptions_, writer_);
  } else if (is_identity_object(object)) {
    kind = Assumption::Kind::identity;
    expected = owned;
  }
  assumptions_.assume(kind, source, expected);
  return std::make_shared<Known>(owned, source);
}

Value Lifting::wrap_varying_tuple(PyObject* object, const Source* source) {
  assumptions_.assume(Assumption::Kind::exact_type, source,
                      Object::borrow(reinterpret_cast<PyObject*>(&PyTuple_Type)));
  assumptions_.assume(Assumption::Kind::length, source, {}, PyTuple_GET_SIZE(object));
  auto sequence = std::make_shared<Sequence>(false);
  sequence->source = source;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    sequence->elements.push_back(wrap(PyTuple_GET_ITEM(object, i),
                                      writer_.sources().step(Source::Kind::index, source, {}, i)));
  return sequence;
}

Value Lifting::wrap_run_time(PyObject* object, const Source* source) {
  auto type = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  assumptions_.assume(Assumption::Kind::exact_type, source, type);
  graph::Value* value = writer_.run_time_input(source);
  state_.known_classes[value] = {{type}, true};
  auto result = std::make_shared<RuntimeObject>(value, Classes{type});
  result->example = Object::borrow(object);
  return result;
}

void Lifting::note_written(const Source* source, const Value& value) {
  auto read = wrapped_.find(source);
  const auto* known = read == wrapped_.end() ? nullptr : as<Known>(read->second);
  if (known == nullptr) return;
  PyObject* object = known->object.get();
  bool is_int = PyLong_CheckExact(object);
  if (!is_int && !PyFloat_CheckExact(object)) return;
  bool changes = false;
  if (const auto* number = as<Number>(value))
    changes = number->type == (is_int ? graph::Type::Kind::i64 : graph::Type::Kind::f64);
  else if (const auto* constant = as<Known>(value))
    changes = Py_TYPE(constant->object.get()) == Py_TYPE(object) &&
              PyObject_RichCompareBool(object, constant->object.get(), Py_EQ) == 0;
  if (changes) facts_.note_changed_number(source);
}

}  // namespace janus::frontend
