// Where runs happen: below autograd, without Python's lock, errors translated.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

#include "execute/library/library.h"

namespace janus::torch {

/// Implements Library::protect.
std::optional<execute::Failure> run_protected(execute::Unlock unlock, void (*body)(void*),
                                              void* context);

/// Throws where the user has pressed Ctrl-C (a Python exception is set then); looks only now and
/// then.
void check_interrupt();

/// While it lives, runs of this thread ask for nothing of Python: whoever waits for them may hold
/// Python's lock. Ctrl-C does not end them.
class WithoutPython {
 public:
  WithoutPython();
  ~WithoutPython();
  WithoutPython(const WithoutPython&) = delete;
  WithoutPython& operator=(const WithoutPython&) = delete;

 private:
  bool before_;
};

/// Inside a run: dispatch as it was outside of it, with gradients on. For calls that autograd
/// records.
class RecordingScope {
 public:
  RecordingScope();
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  c10::impl::ForceDispatchKeyGuard keys_;
  bool grad_mode_;
};

}  // namespace janus::torch
