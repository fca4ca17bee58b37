#include "speculate/taken_locks.h"

namespace janus::speculate {

using python::Object;

PyObject* release_method() {
  static PyObject* const method = [] {
    const Object name = python::string("release");
    return python::call(python::import_attribute("operator", "methodcaller").get(), {name.get()})
        .release();
  }();
  return method;
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
