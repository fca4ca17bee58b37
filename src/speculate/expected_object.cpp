// See expected_object.h.
#include "speculate/expected_object.h"

#include "python/version.h"

namespace janus::speculate {

namespace {

/// Whether the object in practice lives as long as the process, or allows no weak reference.
bool is_kept_strongly(PyObject* object) {
  return PyType_Check(object) || PyCFunction_Check(object) ||
         !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object));
}

}  // namespace

ExpectedObject::ExpectedObject(PyObject* object, PyObject* on_death) : raw_(object) {
  if (object == nullptr) return;
  if (is_kept_strongly(object))
    strong_ = python::Object::borrow(object);
  else
    weak_ = python::check(PyWeakref_NewRef(object, on_death));
}

PyObject* ExpectedObject::get() const {
  if (!weak_) return strong_.get();
  return python::borrowed_referent(weak_.get());
}

}  // namespace janus::speculate
