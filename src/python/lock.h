// Holding or releasing Python's lock for a scope.
#pragma once

#include <Python.h>

namespace janus::python {

/// Holds the lock in its scope, whether the thread has it already or not.
class WithLock {
 public:
  WithLock() : state_(PyGILState_Ensure()) {}
  ~WithLock() { PyGILState_Release(state_); }
  WithLock(const WithLock&) = delete;
  WithLock& operator=(const WithLock&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Releases the lock, which this thread holds, in its scope. With `release` false it does nothing.
class WithoutLock {
 public:
  explicit WithoutLock(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~WithoutLock() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace janus::python
