#include "python/held_signals.h"

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

bool is_main_thread() {
  const Object threading = Object::steal(PyImport_ImportModule("threading"));
  if (!threading) return false;
  const Object thread = Object::steal(PyObject_CallMethod(threading.get(), "main_thread", nullptr));
  if (!thread) return false;
  const Object ident = Object::steal(PyObject_GetAttrString(thread.get(), "ident"));
  return ident && PyLong_Check(ident.get()) != 0 &&
         PyLong_AsUnsignedLong(ident.get()) == PyThread_get_thread_ident();
}

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

/// The handler before; null with an exception set, where one that was due raised it.
Object set_handler(int number, PyObject* handler) {
  return Object::steal(PyObject_CallMethod(signal_module(), "signal", "iO", number, handler));
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

/// Whoever waits for signals at a file descriptor was told when they came.
void raise_again(const std::vector<int>& numbers) {
  if (numbers.empty()) return;
  const Object descriptor =
      Object::steal(PyObject_CallMethod(signal_module(), "set_wakeup_fd", "i", -1));
  if (!descriptor) PyErr_Clear();
  for (const int number : numbers) PyErr_SetInterruptEx(number);
  if (!descriptor ||
      Object::steal(PyObject_CallMethod(signal_module(), "set_wakeup_fd", "O", descriptor.get())))
    return;
  PyErr_Clear();
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
  const ErrorScope unnoticed;
  if (signal_module() == nullptr || !is_main_thread()) {
    PyErr_Clear();
    return;
  }
  if (PyErr_CheckSignals() != 0) take_error();
  for (int number = 1; number < NSIG; ++number) {
    Held held{number, {}, {}};
    if (!handler_of(number) || sigaction(number, nullptr, &held.action) != 0) continue;
    held.handler = set_or_take_errors(number, noter());
    if (held.handler) held_.push_back(std::move(held));
  }
}

HeldSignals::~HeldSignals() {
  const ErrorScope unnoticed;
  for (const Held& each : held_) {
    if (!handler_of(each.number).is(noter())) continue;  // somebody has set another one meanwhile
    set_or_take_errors(each.number, each.handler.get());
    sigaction(each.number, &each.action, nullptr);
  }
  if (!held_.empty()) raise_again(std::exchange(noted(), {}));
  for (Object& each : raised_) {
    PyObject* const exception = each.release();
    if (exception == nullptr || Py_AddPendingCall(raise, exception) == 0) continue;
    raise(exception);  // Python has too many pending calls
    PyErr_WriteUnraisable(nullptr);
  }
}

Object HeldSignals::set_or_take_errors(int number, PyObject* handler) {
  constexpr int kMostHandlersDue = 1000;  // of signals that come faster than they are handled
  for (int i = 0; i < kMostHandlersDue; ++i) {
    if (Object before = set_handler(number, handler)) return before;
    take_error();
  }
  return {};
}

void HeldSignals::take_error() { raised_.push_back(taken_exception()); }

}  // namespace janus::python
