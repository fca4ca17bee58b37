// See guard_checks.h.
#include "speculate/guard_checks.h"

#include <structmember.h>

#include <algorithm>
#include <optional>

#include "python/dict_keys.h"
#include "python/integer.h"
#include "python/version.h"
#include "speculate/describe.h"
#include "speculate/path.h"

namespace janus::speculate {

using Kind = Assumption::Kind;

namespace {

bool holds_length(PyObject* object, int64_t number) {
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object) == number;
  if (PyList_Check(object)) return PyList_GET_SIZE(object) == number;
  if (PyDict_Check(object)) return PyDict_GET_SIZE(object) == number;
  if (PyAnySet_Check(object)) return PySet_GET_SIZE(object) == number;
  if (is_deque(object)) return Py_SIZE(object) == number;
  return false;
}

bool is_key(const ExpectedObject& expected, PyObject* key) {
  if (expected.is(key)) return true;
  PyObject* known = expected.get();
  return known != nullptr && equal_constants(known, key);
}

/// Of a class: the keys of its own attributes.
bool holds_keys(const std::vector<ExpectedObject>& keys, PyObject* object) {
  PyObject* const dict =
      PyType_Check(object) ? python::class_dict(reinterpret_cast<PyTypeObject*>(object)) : object;
  if (!PyDict_Check(dict) || static_cast<size_t>(PyDict_GET_SIZE(dict)) != keys.size())
    return false;
  if (python::has_own_order(dict)) {
    const std::vector<python::Object> now = python::keys_in_order(dict);
    return std::equal(
        keys.begin(), keys.end(), now.begin(), now.end(),
        [](const auto& expected, const auto& key) { return is_key(expected, key.get()); });
  }
  Py_ssize_t position = 0;
  PyObject *key = nullptr, *value = nullptr;
  for (const ExpectedObject& expected : keys)
    if (PyDict_Next(dict, &position, &key, &value) == 0 || !is_key(expected, key)) return false;
  return true;
}

bool has_key(PyObject* object, PyObject* key) {
  if (key == nullptr) return false;  // the key is dead
  if (PyAnySet_Check(object)) {
    const int found = PySet_Contains(object, key);
    if (found < 0) PyErr_Clear();
    return found == 1;
  }
  const auto* slot = PyDict_Check(object) ? nullptr : slot_of(object, key);
  if (slot != nullptr) {
    const python::Object held =
        python::Object::steal(PyMember_GetOne(reinterpret_cast<char*>(object), slot->d_member));
    PyErr_Clear();
    return static_cast<bool>(held);
  }
  PyObject* dict = PyDict_Check(object) ? object : instance_dict(object);
  if (dict == nullptr) return false;
  const int found = PyDict_Contains(dict, key);
  if (found < 0) PyErr_Clear();
  return found != 0;
}

bool has_class_attribute(PyObject* object, PyObject* name) {
  PyTypeObject* type =
      PyType_Check(object) ? reinterpret_cast<PyTypeObject*>(object) : Py_TYPE(object);
  return _PyType_Lookup(type, name) != nullptr;
}

/// Compares the truth of containers, numbers, None and strings only, so that no user's __bool__
/// runs.
bool holds_truth(PyObject* object, bool expected) {
  const bool plain = object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) ||
                     PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
                     PyBytes_CheckExact(object) || PyTuple_Check(object) || PyList_Check(object) ||
                     PyDict_Check(object) || PyAnySet_Check(object);
  if (!plain) return false;
  if (PyDict_Check(object)) return (PyDict_GET_SIZE(object) != 0) == expected;
  const int truth = PyObject_IsTrue(object);
  if (truth < 0) PyErr_Clear();
  return truth == static_cast<int>(expected);
}

bool holds_integer(const Check& check, PyObject* object, Walk& walk) {
  if (!PyLong_CheckExact(object)) return false;
  const std::optional<int64_t> number = python::int64_of(object);
  if (!number) return false;
  return check.symbol < 0 || walk.bind(static_cast<size_t>(check.symbol), *number);
}

bool holds_tensor(const TensorCheck& check, PyObject* object, Walk& walk) {
  int64_t* sizes = walk.sizes.data() + check.first_size;
  if (!tensor_access().matches(object, check.pattern, sizes)) return false;
  for (size_t i = 0; i < check.dims.size(); ++i) {
    const DimCheck& dim = check.dims[i];
    if (dim.kind == DimCheck::Kind::constant && sizes[i] != dim.number) return false;
    if (dim.kind == DimCheck::Kind::symbol &&
        (sizes[i] < dim.number || !walk.bind(dim.symbol, sizes[i])))
      return false;
  }
  return true;
}

bool holds_element(const ElementCheck& check, PyObject* object, Walk& walk) {
  switch (check.kind) {
    case ElementPattern::Kind::integer:
      return PyLong_CheckExact(object) && python::int64_of(object);
    case ElementPattern::Kind::floating:
      return PyFloat_CheckExact(object);
    case ElementPattern::Kind::boolean:
      return PyBool_Check(object);
    case ElementPattern::Kind::tensor:
      return holds_tensor(check.tensor, object, walk);
    case ElementPattern::Kind::tuple:
      break;
  }
  if (!PyTuple_CheckExact(object) || !holds_length(object, std::ssize(check.parts))) return false;
  for (size_t i = 0; i < check.parts.size(); ++i)
    if (!holds_element(check.parts[i], PyTuple_GET_ITEM(object, static_cast<Py_ssize_t>(i)), walk))
      return false;
  return true;
}

/// Checks a list with a symbolic length, which is never 0 or 1, as sizes are not.
bool holds_elements(const Check& check, PyObject* object, Walk& walk) {
  if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return false;
  const Py_ssize_t length = PySequence_Fast_GET_SIZE(object);
  if (length < 2 || !walk.bind(static_cast<size_t>(check.symbol), length)) return false;
  for (Py_ssize_t i = 0; i < length; ++i)
    if (!holds_element(*check.elements, PySequence_Fast_GET_ITEM(object, i), walk)) return false;
  return true;
}

bool is_none_grad(PyObject* tensor) {
  return tensor_access().is_tensor(tensor) && tensor_access().grad_slot(tensor).is_none();
}

}  // namespace

bool holds(const Check& check, PyObject* object, Walk& walk) {
  switch (check.kind) {
    case Kind::identity:
      return check.object.is(object);
    case Kind::exact_type:
      return reinterpret_cast<PyObject*>(Py_TYPE(object)) == check.object.get();
    case Kind::equals:
      return equal_constants(check.object.get(), object);
    case Kind::length:
      return holds_length(object, check.number);
    case Kind::keys:
      return holds_keys(check.keys, object);
    case Kind::has_key:
      return has_key(object, check.object.get());
    case Kind::missing_key:
      return !has_key(object, check.object.get());
    case Kind::missing_attribute:
      return !has_class_attribute(object, check.object.get());
    case Kind::truth:
      return holds_truth(object, check.number != 0);
    case Kind::tensor:
      return holds_tensor(check.tensor, object, walk);
    case Kind::integer:
      return holds_integer(check, object, walk);
    case Kind::floating:
      return PyFloat_CheckExact(object);
    case Kind::boolean:
      return PyBool_Check(object);
    case Kind::no_grad_value:
      return is_none_grad(object);
    case Kind::elements:
      return holds_elements(check, object, walk);
    default:
      return false;  // pairs are checked after the walk
  }
}

}  // namespace janus::speculate
