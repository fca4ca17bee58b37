// Grad mode, for a while.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Grad mode for a while.
class GradMode {
 public:
  GradMode(Interpreter& interpreter, bool enabled)
      : interpreter_(interpreter), before_(interpreter.modes.grad_enabled) {
    interpreter.modes.grad_enabled = enabled;
  }
  ~GradMode() { interpreter_.modes.grad_enabled = before_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  Interpreter& interpreter_;
  bool before_;
};

}  // namespace janus::frontend
