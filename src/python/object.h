// CPython objects with their reference counts kept by the compiler, and the errors of the C API.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace janus::python {

/// An owned reference, or null.
class Object {
 public:
  Object() = default;
  Object(const Object& other) : object_(other.object_) { Py_XINCREF(object_); }
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  /// Takes over a new reference (null allowed).
  static Object steal(PyObject* object) {
    Object result;
    result.object_ = object;
    return result;
  }
  /// Adds a reference to a borrowed one (null allowed).
  static Object borrow(PyObject* object) {
    Py_XINCREF(object);
    return steal(object);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }
  bool is(PyObject* other) const { return object_ == other; }

 private:
  PyObject* object_ = nullptr;
};

/// Thrown where the C API has set a Python exception, which stays set.
class ErrorSet : public std::exception {
 public:
  const char* what() const noexcept override { return "a Python exception is set"; }
};

/// The new reference, or ErrorSet if it is null.
inline Object check(PyObject* new_reference) {
  if (new_reference == nullptr) throw ErrorSet();
  return Object::steal(new_reference);
}
inline void check_status(int status) {
  if (status < 0) throw ErrorSet();
}

}  // namespace janus::python
