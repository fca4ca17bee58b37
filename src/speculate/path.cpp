#include "speculate/path.h"

#include "python/context_variable.h"
#include "speculate/array_contents.h"
#include "speculate/tensor_access.h"
#include "syntax/source.h"

namespace janus::speculate {
namespace {

PyObject* dict_item(PyObject* dict, PyObject* key, Py_hash_t hash) {
  if (dict == nullptr || key == nullptr || !PyDict_Check(dict)) return nullptr;
  PyObject* value = _PyDict_GetItem_KnownHash(dict, key, hash);
  if (value == nullptr && PyErr_Occurred() != nullptr) PyErr_Clear();
  return value;
}

PyObject* tuple_item(PyObject* tuple, Py_ssize_t index) {
  if (tuple == nullptr || !PyTuple_Check(tuple)) return nullptr;
  return index >= 0 && index < PyTuple_GET_SIZE(tuple) ? PyTuple_GET_ITEM(tuple, index) : nullptr;
}

PyObject* sequence_item(PyObject* sequence, Py_ssize_t index) {
  if (!PyList_Check(sequence)) return tuple_item(sequence, index);
  if (index < 0) index += PyList_GET_SIZE(sequence);
  return index >= 0 && index < PyList_GET_SIZE(sequence) ? PyList_GET_ITEM(sequence, index)
                                                         : nullptr;
}

/// The value of a keyword argument, which follow the positional ones.
PyObject* keyword_argument(const Call& call, PyObject* name) {
  if (call.keyword_names == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(call.keyword_names); ++i) {
    PyObject* each = PyTuple_GET_ITEM(call.keyword_names, i);
    if (each == name || PyUnicode_Compare(each, name) == 0)
      return call.arguments[call.argument_count + i];
  }
  return nullptr;
}

/// The builtins of code with these globals, a dict.
PyObject* builtins_of(PyObject* globals) {
  PyObject* builtins = globals == nullptr ? nullptr : PyDict_GetItemString(globals, "__builtins__");
  if (builtins != nullptr && PyModule_Check(builtins)) return PyModule_GetDict(builtins);
  return builtins != nullptr ? builtins : PyEval_GetBuiltins();
}

PyObject* variable(const PathStep& step, const Call& call, PyObject* name) {
  if (PyObject* value = dict_item(call.variables, name, step.hash)) return value;
  if (step.index != 0) return nullptr;
  return find_global(call.globals, builtins_of(call.globals), name, step.hash);
}

PyObject* global_of(PyObject* function, PyObject* name, Py_hash_t hash) {
  if (PyFunction_Check(function)) {
    const auto* object = reinterpret_cast<PyFunctionObject*>(function);
    return find_global(object->func_globals, object->func_builtins, name, hash);
  }
  if (PyDict_Check(function)) return find_global(function, builtins_of(function), name, hash);
  return nullptr;
}

PyObject* closure_value(PyObject* function, Py_ssize_t index) {
  if (!PyFunction_Check(function)) return nullptr;
  PyObject* cell = tuple_item(PyFunction_GET_CLOSURE(function), index);
  return cell != nullptr && PyCell_Check(cell) ? PyCell_GET(cell) : nullptr;
}

PyObject* keep(PyObject* new_reference, std::vector<python::Object>& owned) {
  if (new_reference == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  owned.push_back(python::Object::steal(new_reference));
  return new_reference;
}

/// The length, a new reference; null if it can't be read without running the user's code.
PyObject* length_of(PyObject* base) {
  if (PyList_Check(base)) return PyLong_FromSsize_t(PyList_GET_SIZE(base));
  if (PyTuple_Check(base)) return PyLong_FromSsize_t(PyTuple_GET_SIZE(base));
  if (PyDict_Check(base)) return PyLong_FromSsize_t(PyDict_GET_SIZE(base));
  if (PyAnySet_Check(base)) return PyLong_FromSsize_t(PySet_GET_SIZE(base));
  return nullptr;
}

PyObject* attribute_of(PyObject* base, const PathStep& step, PyObject* name,
                       std::vector<python::Object>& owned) {
  if (PyModule_CheckExact(base))
    if (PyObject* value = dict_item(PyModule_GetDict(base), name, step.hash)) return value;
  return keep(PyObject_GetAttr(base, name), owned);
}

PyObject* take_root(const PathStep& step, const Call& call) {
  switch (step.kind) {
    case Source::Kind::argument:
      return step.index < call.argument_count ? call.arguments[step.index] : nullptr;
    case Source::Kind::keyword:
      return keyword_argument(call, step.key.get());
    case Source::Kind::variable:
      return variable(step, call, step.key.get());
    case Source::Kind::function:
      return call.function;
    default:
      return step.key.get();
  }
}

}  // namespace

PyObject* instance_dict(PyObject* object) {
  PyObject** place = _PyObject_GetDictPtr(object);
  return place == nullptr ? nullptr : *place;
}

const PyMemberDescrObject* slot_of(PyObject* object, PyObject* name) {
  if (name == nullptr || !PyUnicode_CheckExact(name)) return nullptr;
  PyObject* const found = _PyType_Lookup(Py_TYPE(object), name);
  return found != nullptr && Py_TYPE(found) == &PyMemberDescr_Type
             ? reinterpret_cast<const PyMemberDescrObject*>(found)
             : nullptr;
}

PyObject* find_global(PyObject* globals, PyObject* builtins, PyObject* name, Py_hash_t hash) {
  if (PyObject* value = dict_item(globals, name, hash)) return value;
  return dict_item(builtins, name, hash);
}

bool is_deque(PyObject* object) {
  static PyObject* const type = python::import_attribute("collections", "deque").release();
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

PyObject* take_step(const PathStep& step, PyObject* base, const Call& call,
                    std::vector<python::Object>& owned) {
  using Kind = Source::Kind;
  if (step.kind <= Kind::constant) return take_root(step, call);
  PyObject* key = step.key.get();
  switch (step.kind) {
    case Kind::attribute:
      return key == nullptr ? nullptr : attribute_of(base, step, key, owned);
    case Kind::instance_value:
      return dict_item(instance_dict(base), key, step.hash);
    case Kind::type:
      return reinterpret_cast<PyObject*>(Py_TYPE(base));
    case Kind::type_attribute:
      return PyType_Check(base) && key != nullptr
                 ? _PyType_Lookup(reinterpret_cast<PyTypeObject*>(base), key)
                 : nullptr;
    case Kind::item:
      return dict_item(base, key, step.hash);
    case Kind::index:
      if (is_deque(base)) return keep(PySequence_GetItem(base, step.index), owned);
      return sequence_item(base, step.index);
    case Kind::length:
      return keep(length_of(base), owned);
    case Kind::global:
      return key == nullptr ? nullptr : global_of(base, key, step.hash);
    case Kind::closure:
      return closure_value(base, step.index);
    case Kind::default_value:
      return PyFunction_Check(base) ? tuple_item(PyFunction_GET_DEFAULTS(base), step.index)
                                    : nullptr;
    case Kind::keyword_default:
      return PyFunction_Check(base) ? dict_item(PyFunction_GET_KW_DEFAULTS(base), key, step.hash)
                                    : nullptr;
    case Kind::bound_function:
      return PyMethod_Check(base) ? PyMethod_GET_FUNCTION(base) : nullptr;
    case Kind::bound_self:
      return PyMethod_Check(base) ? PyMethod_GET_SELF(base) : nullptr;
    case Kind::code:  // a cut or outlined function does what it did
      return PyFunction_Check(base) ? syntax::original_code(PyFunction_GET_CODE(base)) : nullptr;
    case Kind::grad:
      return tensor_access().is_tensor(base) ? keep(tensor_access().grad_of(base), owned) : nullptr;
    case Kind::array_contents:
      return is_array(base) ? keep(contents_of_array(base), owned) : nullptr;
    case Kind::link_result:
      if (reinterpret_cast<PyObject*>(Py_TYPE(base)) != key) return nullptr;
      return object_at(base, step.index);
    case Kind::context_value:
      return PyContextVar_CheckExact(base)
                 ? keep(python::held_by_context_variable(base).release(), owned)
                 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace janus::speculate
