#include "speculate/array_contents.h"

namespace janus::speculate {

using python::Object;

bool is_array(PyObject* object) {
  static PyTypeObject* type = nullptr;
  if (type == nullptr) {
    PyObject* const numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
    if (numpy == nullptr) return false;  // the program may load it later
    const Object found = python::try_attribute(numpy, "ndarray");
    if (!found || !PyType_Check(found.get())) return false;
    type = reinterpret_cast<PyTypeObject*>(Py_NewRef(found.get()));
  }
  return Py_IS_TYPE(object, type);
}

PyObject* contents_of_array(PyObject* array) {
  static PyObject* const functions =
      python::import_attribute("torch._C", "_VariableFunctions").release();
  static PyObject* const make = python::attribute(functions, "tensor").release();
  return PyObject_CallOneArg(make, array);
}

}  // namespace janus::speculate
