// Code that runs in another thread of Python, before anything else does there.
#pragma once

#include "python/object.h"
#include "python/version.h"

namespace janus::python {

/// Has `function` called in a thread at its next event: before its next instruction, even if it
/// waits in a function of C now. Since 3.12: at its next call or return. The function ends that by
/// end_events(). A thread that the program traces keeps its trace function, and has its next call
/// or return as its event. Negative, with an exception set, if that fails.
inline int call_at_next_event(PyThreadState* thread, Py_tracefunc function) {
#if !TORCHJANUS_SINCE_3_12
  if (thread->c_tracefunc == nullptr) {
    if (_PyEval_SetTrace(thread, function, nullptr) < 0) return -1;
    const Object frame = Object::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(thread)));
    if (frame && PyObject_SetAttrString(frame.get(), "f_trace_opcodes", Py_True) < 0) return -1;
  }
#endif
  return set_profile(thread, function);
}

/// Within the function.
inline int end_events(PyFrameObject* frame, Py_tracefunc function) {
  PyThreadState* const thread = PyThreadState_Get();
#if !TORCHJANUS_SINCE_3_12
  if (thread->c_tracefunc == function) {
    auto* const of_frame = reinterpret_cast<PyObject*>(frame);
    if (PyObject_SetAttrString(of_frame, "f_trace_opcodes", Py_False) < 0) return -1;
    if (_PyEval_SetTrace(thread, nullptr, nullptr) < 0) return -1;
  }
#endif
  return thread->c_profilefunc == function ? set_profile(thread, nullptr) : 0;
}

}  // namespace janus::python
