// Owning references to CPython objects, and the errors of the C API as C++ exceptions.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Saves the current Python exception. Its end drops whatever was raised meanwhile and restores the
/// old one (or none). Used around our own work where the program must not notice it.
class ErrorScope {
 public:
  ErrorScope();
  ~ErrorScope();
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;

 private:
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* exception_;
#else
  PyObject *type_, *value_, *traceback_;
#endif
};

/// Clears the current Python exception and returns it as "ValueError: text"; empty if none is set.
std::string take_error_message();

// --- making objects ----------------------------------------------------------------------------
inline Object none() { return Object::borrow(Py_None); }
inline Object boolean(bool value) { return Object::borrow(value ? Py_True : Py_False); }
Object integer(int64_t value);
Object string(std::string_view text);
/// The interned str with that text; immortal.
PyObject* interned(const char* text);
Object tuple(const std::vector<Object>& elements);
Object list(const std::vector<Object>& elements);

// --- reading objects; ErrorSet when Python raises ------------------------------------------------
Object attribute(PyObject* object, PyObject* name);
Object attribute(PyObject* object, const char* name);
/// Null when there is no such attribute.
Object try_attribute(PyObject* object, PyObject* name);
Object try_attribute(PyObject* object, const char* name);
void set_attribute(PyObject* object, const char* name, PyObject* value);
/// The value of `key` in a dict or an instance of a subclass; null when it is missing.
Object dict_item(PyObject* dict, PyObject* key);
Object dict_item(PyObject* dict, const char* key);
/// The elements of any iterable.
std::vector<Object> elements(PyObject* iterable);
/// The text of a str as UTF-8 (lone surrogates as Python's surrogatepass writes them).
std::string to_string(PyObject* str);
int64_t to_integer(PyObject* integer);
bool equal(PyObject* a, PyObject* b);  ///< a == b by Python's rules
/// repr(object), or a stand-in with its class where that raises. Never raises.
std::string repr(PyObject* object);
/// The name of the object's class: "Linear".
std::string type_name(PyObject* object);

// --- calling -------------------------------------------------------------------------------------
Object call(PyObject* callable, std::initializer_list<PyObject*> arguments = {});
Object call_method(PyObject* object, const char* name,
                   std::initializer_list<PyObject*> arguments = {});
Object import_module(const char* name);
Object import_attribute(const char* module, const char* name);

// --- weak references -----------------------------------------------------------------------------
bool is_weakly_referable(PyObject* object);
/// A weak reference (shared with other plain ones), or null if the class allows none.
Object weak_reference(PyObject* object);
/// What a weak reference points to, or null once it is dead.
Object referent(PyObject* weak_reference);

}  // namespace janus::python
