#include "python/next_event.h"

#include <algorithm>

namespace janus::python {

namespace {

/// Whether there are events before each instruction of the code that the thread runs now. False: it
/// runs none, or Python has raised something, which is dropped.
bool has_opcode_events(PyThreadState* thread) {
  const Object frame = Object::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(thread)));
  if (!frame) return false;
  if (PyObject_SetAttrString(frame.get(), "f_trace_opcodes", Py_True) == 0) return true;
  PyErr_Clear();
  return false;
}

#if TORCHJANUS_SINCE_3_12

bool is_any_traced() {
  PyThreadState* each = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  while (each != nullptr && each->c_tracefunc == nullptr) each = PyThreadState_Next(each);
  return each != nullptr;
}

/// Only for all threads at once there is a public function. Those that were not meant end it at
/// their next event, too.
void trace(std::span<PyThreadState* const> threads, Py_tracefunc function) {
  if (is_any_traced() || std::ranges::count_if(threads, has_opcode_events) == 0) return;
  PyEval_SetTraceAllThreads(function, nullptr);
  PyEval_SetTrace(nullptr, nullptr);  // here
}

void end_trace() { PyEval_SetTrace(nullptr, nullptr); }

#else

void trace(std::span<PyThreadState* const> threads, Py_tracefunc function) {
  for (PyThreadState* const each : threads) {
    if (each->c_tracefunc != nullptr) continue;
    if (_PyEval_SetTrace(each, function, nullptr) < 0) PyErr_Clear();
    has_opcode_events(each);
  }
}

void end_trace() {
  if (_PyEval_SetTrace(PyThreadState_Get(), nullptr, nullptr) < 0) PyErr_Clear();
}

#endif

}  // namespace

void call_at_next_event(std::span<PyThreadState* const> threads, Py_tracefunc function) {
  for (PyThreadState* const each : threads)
    if (set_profile(each, function) < 0) PyErr_Clear();
  trace(threads, function);
}

int end_events(PyFrameObject* frame, Py_tracefunc function) {
  PyThreadState* const thread = PyThreadState_Get();
  if (thread->c_tracefunc == function) {
    auto* const of_frame = reinterpret_cast<PyObject*>(frame);
    if (PyObject_SetAttrString(of_frame, "f_trace_opcodes", Py_False) < 0) return -1;
    end_trace();
  }
  return thread->c_profilefunc == function ? set_profile(thread, nullptr) : 0;
}

}  // namespace janus::python
