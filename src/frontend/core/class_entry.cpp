#include "frontend/core/class_entry.h"

#include "python/classes.h"

namespace janus::frontend {

using python::Object;

PyObject* class_entry(Interpreter& interpreter, PyTypeObject* type, const char* name) {
  Object key = Object::steal(PyUnicode_InternFromString(name));
  PyObject* found = _PyType_Lookup(type, key.get());
  const Source* owner = interpreter.sources().root(
      Source::Kind::constant, Object::borrow(reinterpret_cast<PyObject*>(type)));
  if (found != nullptr)
    interpreter.assume(Assumption::Kind::identity,
                       interpreter.sources().step(Source::Kind::type_attribute, owner, key),
                       Object::borrow(found));
  else
    interpreter.assume(Assumption::Kind::missing_attribute, owner, key);
  return found;
}

void assume_entries(Interpreter& interpreter, PyTypeObject* type,
                    std::initializer_list<const char*> names) {
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return;
  for (const char* name : names) class_entry(interpreter, type, name);
}

bool is_of_class_in_c(PyTypeObject* type, PyObject* method, const char* name) {
  const Object key = Object::steal(PyUnicode_InternFromString(name));
  return method == _PyType_Lookup(python::class_in_c(type), key.get());
}

}  // namespace janus::frontend
