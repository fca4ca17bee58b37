// What differs between the versions of CPython that we are built with: 3.11 to 3.14. The rest of
// the sources is the same for all of them, and asks here. Each difference has the version
// that brought it, and the reason. Two have files of their own: how dicts tell of their changes
// (dict_version.h), and what an ErrorScope keeps (object.h).
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

#define TORCHJANUS_SINCE_3_12 (PY_VERSION_HEX >= 0x030C0000)
#define TORCHJANUS_SINCE_3_13 (PY_VERSION_HEX >= 0x030D0000)
#define TORCHJANUS_SINCE_3_14 (PY_VERSION_HEX >= 0x030E0000)

#if TORCHJANUS_SINCE_3_13
// Exported, but declared in an internal header since 3.13.
extern "C" PyAPI_FUNC(int) _PyEval_SetProfile(PyThreadState*, Py_tracefunc, PyObject*);
#endif

namespace janus::python {

// --- classes -------------------------------------------------------------------------------------

/// The dict of a class. Since 3.12 each interpreter has dicts of its own for the classes that are
/// built in, and their `tp_dict` is null.
inline PyObject* class_dict(PyTypeObject* type) {
#if TORCHJANUS_SINCE_3_12
  PyObject* const dict = PyType_GetDict(type);
  Py_XDECREF(dict);  // the class keeps it
  return dict;
#else
  return type->tp_dict;
#endif
}

/// The version of a class, which changes with the class and its bases; 0 if it has none, as between
/// a change and the next lookup. The flag says nothing any more since 3.13.
inline unsigned version_of(const PyTypeObject* type) {
#if TORCHJANUS_SINCE_3_12
  return type->tp_version_tag;
#else
  return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) != 0 ? type->tp_version_tag : 0;
#endif
}

// --- weak references -----------------------------------------------------------------------------

/// What a weak reference points to, borrowed; null once it is dead. `PyWeakref_GET_OBJECT`, which
/// does the same, is deprecated since 3.13, and its successor counts references.
inline PyObject* borrowed_referent(PyObject* weak_reference) {
  PyObject* const object = reinterpret_cast<PyWeakReference*>(weak_reference)->wr_object;
  // An object whose end is put off (a long chain of them) has no references left.
  return object == Py_None || Py_REFCNT(object) <= 0 ? nullptr : object;
}

// --- frames --------------------------------------------------------------------------------------

/// The number of further frames of Python code up to the recursion limit. 3.12 counts C code apart.
inline int64_t frames_left() {
#if TORCHJANUS_SINCE_3_12
  return PyThreadState_Get()->py_recursion_remaining;
#else
  return PyThreadState_Get()->recursion_remaining;
#endif
}

/// The variables of the calling frame as a dict, a new reference. Null, with an exception set, if
/// that fails. Until 3.12 the frame keeps the dict of a function's variables, and whoever asks
/// again gets the same one. Since 3.13 each has a snapshot of his own.
inline PyObject* variables_of_frame() {
#if TORCHJANUS_SINCE_3_13
  return PyEval_GetFrameLocals();
#else
  PyObject* const variables = PyEval_GetLocals();
  Py_XINCREF(variables);
  return variables;
#endif
}
/// Whether a variable of that kind (a byte of `co_localspluskinds`) belongs to a comprehension that
/// was inlined into the code, since 3.12: the code itself may read a global of that name.
inline bool is_hidden_variable(char kind) { return (kind & 0x10) != 0; }

constexpr bool kFrameKeepsVariables = !TORCHJANUS_SINCE_3_13;

// --- tools that watch the program ----------------------------------------------------------------

/// Whether there is `sys.monitoring`: debuggers and coverage tools may use it in place of a trace
/// function.
constexpr bool kHasMonitoring = TORCHJANUS_SINCE_3_12;

/// Sets the profile function of a thread, which need not be this one.
inline int set_profile(PyThreadState* thread, Py_tracefunc function) {
  return _PyEval_SetProfile(thread, function, nullptr);
}

/// Whether a thread's state can be used. Until 3.11 a new thread adds it to the interpreter's list
/// before it is filled in, and that without Python's lock; `cframe` is among the last fields.
inline bool is_filled_in(PyThreadState* thread) {
#if TORCHJANUS_SINCE_3_12
  static_cast<void>(thread);
  return true;
#else
  return __atomic_load_n(&thread->cframe, __ATOMIC_ACQUIRE) != nullptr;
#endif
}

// --- builtins ------------------------------------------------------------------------------------

/// Whether `sum` keeps account of what additions of floats round away, and adds that at the end.
constexpr bool kCompensatesSums = TORCHJANUS_SINCE_3_12;
/// The same of ints that are added to floats.
constexpr bool kCompensatesIntsInSums = TORCHJANUS_SINCE_3_14;
/// The same of complex numbers.
constexpr bool kCompensatesComplexSums = TORCHJANUS_SINCE_3_14;

// --- syntax and code -----------------------------------------------------------------------------

/// Whether functions, classes and aliases have type parameters (PEP 695): their nodes have a field
/// more.
constexpr bool kHasTypeParameters = TORCHJANUS_SINCE_3_12;

/// Whether the compiler skips the outer test of an operand of `and` or `or` that is such an
/// operation itself and was tested already. 3.12 and 3.13 do not.
constexpr bool kTakesTruthOnce = !TORCHJANUS_SINCE_3_12 || TORCHJANUS_SINCE_3_14;

/// Flags of a code object that tell of its surroundings, and may differ between a definition that
/// is compiled by itself and the same one in its file.
constexpr int kFlagsOfSurroundings = CO_NESTED
#if TORCHJANUS_SINCE_3_14
                                     | CO_METHOD
#endif
    ;

/// Whether a definition leaves the annotations of its parameters to a function of its own, which
/// whoever reads them calls (PEP 649). Until 3.13 it evaluates them itself.
constexpr bool kDefersAnnotations = TORCHJANUS_SINCE_3_14;

/// Gives a function the annotations of another one.
inline void share_annotations(const PyFunctionObject& from, PyFunctionObject& to) {
  Py_XINCREF(from.func_annotations);
  Py_XSETREF(to.func_annotations, from.func_annotations);
#if TORCHJANUS_SINCE_3_14
  // They are the dict, the function that makes it, or both.
  Py_XINCREF(from.func_annotate);
  Py_XSETREF(to.func_annotate, from.func_annotate);
#endif
}

// --- exceptions ----------------------------------------------------------------------------------

#if TORCHJANUS_SINCE_3_12
/// The current exception, taken from Python. Since 3.12 it is one object.
class RaisedException {
 public:
  RaisedException() : exception_(PyErr_GetRaisedException()) {}
  void give_back() { PyErr_SetRaisedException(exception_); }
  /// A new reference to the exception object; null if there was none.
  PyObject* release() { return exception_; }

 private:
  PyObject* exception_;
};
#else
class RaisedException {
 public:
  RaisedException() { PyErr_Fetch(&type_, &value_, &traceback_); }
  void give_back() { PyErr_Restore(type_, value_, traceback_); }
  PyObject* release() {
    if (type_ == nullptr) return nullptr;
    PyErr_NormalizeException(&type_, &value_, &traceback_);
    Py_XDECREF(type_);
    Py_XDECREF(traceback_);
    return value_;
  }

 private:
  PyObject *type_, *value_, *traceback_;
};
#endif

}  // namespace janus::python
