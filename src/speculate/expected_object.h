// An object that a guard expects to meet again, kept without keeping the user's objects alive.
#pragma once

#include "python/object.h"

namespace janus::speculate {

/// An object that later calls must find again. The user's objects are held by weak reference.
class ExpectedObject {
 public:
  ExpectedObject() = default;
  /// `on_death` is called with the weak reference when the object dies; it may be null.
  ExpectedObject(PyObject* object, PyObject* on_death);

  /// The object; null once it is dead.
  PyObject* get() const;
  bool is(PyObject* object) const { return object == raw_ && get() == raw_; }
  bool dead() const { return get() == nullptr; }
  bool may_die() const { return static_cast<bool>(weak_); }

 private:
  PyObject* raw_ = nullptr;
  python::Object strong_, weak_;
};

}  // namespace janus::speculate
