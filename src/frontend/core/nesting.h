// How deep a walk over what containers hold may go: they may hold themselves.
#pragma once

#include "frontend/core/frames.h"

namespace janus::frontend {

/// While it lives, a walk is one level deeper. Refuses where that is too deep.
class Nesting {
 public:
  explicit Nesting(const Frames& frames) {
    if (levels_ == kMostLevels)
      frames.refuse(speculate::ReasonCode::limit, "containers that are nested too deeply");
    ++levels_;
  }
  ~Nesting() { --levels_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  static constexpr int kMostLevels = 100;  // chosen, not measured
  static inline thread_local int levels_ = 0;
};

}  // namespace janus::frontend
