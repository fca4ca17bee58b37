#include "speculate/taken_locks.h"

namespace janus::speculate {

using python::Object;

Object release_method(PyObject* lock) {
  return python::attribute(reinterpret_cast<PyObject*>(Py_TYPE(lock)), "release");
}

bool is_release_method(PyObject* callable) {
  const auto of = [](const char* kind) {
    const Object type = python::import_attribute("_thread", kind);
    return python::attribute(type.get(), "release").release();
  };
  static PyObject* const locks = of("LockType");
  static PyObject* const reentrant = of("RLock");
  return callable == locks || callable == reentrant;
}

TakenLocks::~TakenLocks() {
  const python::ErrorScope errors;
  while (!locks_.empty()) {
    try {
      release();
    } catch (const python::ErrorSet&) {  // given back by somebody else; Python runs the call now
      PyErr_Clear();
    }
  }
}

bool TakenLocks::take(const Object& lock) {
  if (!python::call_method(lock.get(), "acquire", {Py_False}).is(Py_True)) return false;
  locks_.push_back(lock);
  return true;
}

void TakenLocks::release() {
  while (!locks_.empty()) {
    const Object lock = locks_.back();
    locks_.pop_back();
    python::call_method(lock.get(), "release");
  }
}

}  // namespace janus::speculate
