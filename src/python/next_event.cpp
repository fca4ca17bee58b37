#include "python/next_event.h"

#include <algorithm>
#include <unordered_map>

namespace janus::python {

namespace {

/// The frames that have events before each instruction, by their threads. Guarded by Python's lock.
std::unordered_map<PyThreadState*, Object>& watched_frames() {
  static auto* const all = new std::unordered_map<PyThreadState*, Object>;
  return *all;
}

PyObject* do_nothing(PyObject* /*self*/, PyObject* /*arguments*/) { Py_RETURN_NONE; }

/// Since 3.13 a frame has such events only if it has a trace function. Python calls it if the
/// program begins to trace the thread meanwhile.
PyObject* function_of_frames() {
  static PyMethodDef definition = {"do_nothing", do_nothing, METH_VARARGS, nullptr};
  static PyObject* const function = check(PyCFunction_New(&definition, nullptr)).release();
  return function;
}

bool set_opcode_events(const Object& frame, bool are_on) {
  PyObject* const function = are_on ? function_of_frames() : Py_None;
  if (PyObject_SetAttrString(frame.get(), "f_trace", function) == 0 &&
      PyObject_SetAttrString(frame.get(), "f_trace_opcodes", are_on ? Py_True : Py_False) == 0)
    return true;
  PyErr_Clear();
  return false;
}

/// Has events before each instruction of the code that each of the threads runs now.
void watch_frames(std::span<PyThreadState* const> threads) {
  for (PyThreadState* const each : threads) {
    const Object frame = Object::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(each)));
    if (frame && set_opcode_events(frame, true)) watched_frames().insert_or_assign(each, frame);
  }
}

#if TORCHJANUS_SINCE_3_12

/// By the program, or a debugger: with another function.
bool is_any_traced(Py_tracefunc function) {
  PyThreadState* each = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  while (each != nullptr && (each->c_tracefunc == nullptr || each->c_tracefunc == function))
    each = PyThreadState_Next(each);
  return each != nullptr;
}

bool runs_code(PyThreadState* thread) {
  return bool(Object::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(thread))));
}

/// Only for all threads at once there is a public function. Those that were not meant end it at
/// their next event, too. In 3.12 events of a frame begin with the next tracing.
void trace(std::span<PyThreadState* const> threads, Py_tracefunc function) {
  if (is_any_traced(function) || std::ranges::none_of(threads, runs_code)) return;
  watch_frames(threads);
  PyEval_SetTraceAllThreads(function, nullptr);
  PyEval_SetTrace(nullptr, nullptr);  // here
}

/// Since 3.13 events belong to the code. They are lost where tracing begins, and with what is done
/// for another frame of that code, or for a new thread.
void renew_frames() {
  for (const auto& [thread, frame] : watched_frames()) {
    set_opcode_events(frame, false);
    set_opcode_events(frame, true);
  }
}

void end_trace() { PyEval_SetTrace(nullptr, nullptr); }

#else

void trace(std::span<PyThreadState* const> threads, Py_tracefunc function) {
  for (PyThreadState* const each : threads) {
    if (each->c_tracefunc != nullptr) continue;
    if (_PyEval_SetTrace(each, function, nullptr) < 0) PyErr_Clear();
    watch_frames({&each, 1});
  }
}

void renew_frames() {}

void end_trace() {
  if (_PyEval_SetTrace(PyThreadState_Get(), nullptr, nullptr) < 0) PyErr_Clear();
}

#endif

}  // namespace

void call_at_next_event(std::span<PyThreadState* const> threads, Py_tracefunc function) {
  for (PyThreadState* const each : threads)
    if (set_profile(each, function) < 0) PyErr_Clear();
  trace(threads, function);
  renew_frames();
}

int end_events(Py_tracefunc function) {
  PyThreadState* const thread = PyThreadState_Get();
  if (const auto frame = watched_frames().extract(thread)) {
    set_opcode_events(frame.mapped(), false);
    renew_frames();
  }
  if (thread->c_tracefunc == function) end_trace();
  return thread->c_profilefunc == function ? set_profile(thread, nullptr) : 0;
}

}  // namespace janus::python
