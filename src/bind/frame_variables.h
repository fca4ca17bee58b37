// The variables of the frame that calls us.
#pragma once

#include "python/object.h"
#include "python/version.h"

namespace janus::bind {

/// The variables of the calling frame, as a dict. Where the frame keeps the dict, it is emptied
/// afterwards, unless the program holds it too: it would keep objects alive.
class FrameVariables {
 public:
  FrameVariables()
      : dict_(python::Object::steal(python::variables_of_frame())),
        code_(python::Object::steal(
            reinterpret_cast<PyObject*>(PyFrame_GetCode(PyEval_GetFrame())))) {
    if (!dict_) throw python::ErrorSet();
  }
  ~FrameVariables() {
    if (!python::kFrameKeepsVariables) return;
    constexpr Py_ssize_t kFrameAndUs = 2;
    const bool are_fast = (code()->co_flags & CO_OPTIMIZED) != 0;
    if (are_fast && PyDict_CheckExact(dict_.get()) && Py_REFCNT(dict_.get()) == kFrameAndUs)
      PyDict_Clear(dict_.get());
  }
  FrameVariables(const FrameVariables&) = delete;
  FrameVariables& operator=(const FrameVariables&) = delete;
  PyObject* get() const { return dict_.get(); }
  PyCodeObject* code() const { return reinterpret_cast<PyCodeObject*>(code_.get()); }

 private:
  python::Object dict_, code_;
};

}  // namespace janus::bind
