// Grad mode, for a while.
#pragma once

#include "frontend/core/interpreter_state.h"

namespace janus::frontend {

/// Grad mode for a while.
class GradMode {
 public:
  GradMode(InterpreterState& state, bool enabled)
      : state_(state), before_(state.modes.grad_enabled) {
    state.modes.grad_enabled = enabled;
  }
  ~GradMode() { state_.modes.grad_enabled = before_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  InterpreterState& state_;
  bool before_;
};

}  // namespace janus::frontend
