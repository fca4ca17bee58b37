#include "frontend/core/object_kinds.h"

#include "frontend/core/torch_objects.h"

namespace janus::frontend {

bool is_enumeration(PyTypeObject* type) {
  static PyObject* const metaclass = imported("enum.EnumMeta");
  const int found = PyObject_IsInstance(reinterpret_cast<PyObject*>(type), metaclass);
  PyErr_Clear();
  return found == 1;
}

bool is_identity_object(PyObject* object) {
  if (PyFunction_Check(object) || PyType_Check(object) || PyModule_Check(object) ||
      PyCFunction_Check(object) || Py_TYPE(object) == &PyMethodDescr_Type ||
      Py_TYPE(object) == &PyWrapperDescr_Type || Py_TYPE(object) == &PyGetSetDescr_Type ||
      Py_TYPE(object) == &PyMemberDescr_Type)
    return true;
  if (is_enumeration(Py_TYPE(object))) return true;
  return is_torch_constant(object);
}

bool is_cached_function(PyTypeObject* type) {
  static PyObject* const wrapper = imported("functools._lru_cache_wrapper");
  return reinterpret_cast<PyObject*>(type) == wrapper;
}

bool is_partial(const PyTypeObject* type) {
  static PyObject* const partial = imported("functools.partial");
  return type != nullptr && reinterpret_cast<const PyObject*>(type) == partial;
}

bool is_method_of_immutable(PyObject* callable) {
  return is_method_of_contents(callable) ||
         ((Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type) &&
          PyDescr_TYPE(callable) == &PyTuple_Type);
}

bool is_method_of_contents(PyObject* callable) {
  if (Py_TYPE(callable) != &PyMethodDescr_Type && Py_TYPE(callable) != &PyWrapperDescr_Type)
    return false;
  PyTypeObject* const owner = PyDescr_TYPE(callable);
  return owner == &PyUnicode_Type || owner == &PyLong_Type || owner == &PyFloat_Type ||
         owner == &PyBytes_Type || owner == &PyBool_Type || owner == &PyComplex_Type;
}

}  // namespace janus::frontend
