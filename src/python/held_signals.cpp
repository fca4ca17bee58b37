#include "python/held_signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace janus::python {

namespace {

/// Of the main thread alone.
std::vector<int>& noted() {
  static std::vector<int> signals;
  return signals;
}

PyObject* note(PyObject* /*self*/, PyObject* arguments) {
  const long number = PyLong_AsLong(PyTuple_GetItem(arguments, 0));
  if (number > 0) noted().push_back(static_cast<int>(number));
  Py_RETURN_NONE;
}

PyObject* noter() {
  static PyMethodDef definition = {"note", note, METH_VARARGS, nullptr};
  static PyObject* const function = PyCFunction_New(&definition, nullptr);
  return function;
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

PyObject* signal_module() {
  static PyObject* const module = PyImport_ImportModule("_signal");
  return module;
}

/// The program's function; null where there is none.
Object handler_of(int number) {
  Object handler = Object::steal(PyObject_CallMethod(signal_module(), "getsignal", "i", number));
  if (!handler) PyErr_Clear();  // no such signal
  return handler && PyCallable_Check(handler.get()) != 0 ? handler : Object();
}

/// False with an exception set, where a handler that was due raised it.
bool set_handler(int number, PyObject* handler) {
  return bool(Object::steal(PyObject_CallMethod(signal_module(), "signal", "iO", number, handler)));
}

Object taken_exception() {
#if PY_VERSION_HEX >= 0x030C0000
  return Object::steal(PyErr_GetRaisedException());
#else
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return Object::steal(value);
#endif
}

/// A pending call: Python makes it in the main thread, between two instructions.
int raise(void* exception) {
  auto* const value = static_cast<PyObject*>(exception);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
  Py_DECREF(value);
  return -1;
}

}  // namespace

HeldSignals::HeldSignals() {
  if (!is_main_thread() || signal_module() == nullptr) return;
  const ErrorScope unnoticed;
  if (PyErr_CheckSignals() != 0) take_error();
  for (int number = 1; number < NSIG; ++number) {
    Held held{number, handler_of(number), {}};
    if (!held.handler || sigaction(number, nullptr, &held.action) != 0) continue;
    if (set_or_take_error(number, noter())) held_.push_back(std::move(held));
  }
}

HeldSignals::~HeldSignals() {
  const ErrorScope unnoticed;
  for (const Held& each : held_) {
    set_or_take_error(each.number, each.handler.get());
    sigaction(each.number, &each.action, nullptr);
  }
  if (!held_.empty())
    for (const int number : std::exchange(noted(), {})) PyErr_SetInterruptEx(number);
  for (Object& each : raised_)
    if (each) Py_AddPendingCall(raise, each.release());
}

bool HeldSignals::set_or_take_error(int number, PyObject* handler) {
  constexpr int kMostHandlersDue = 8;  // of signals that come faster than they are handled
  for (int i = 0; i < kMostHandlersDue; ++i) {
    if (set_handler(number, handler)) return true;
    take_error();
  }
  return false;
}

void HeldSignals::take_error() { raised_.push_back(taken_exception()); }

}  // namespace janus::python
