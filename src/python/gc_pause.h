// Python's cyclic garbage collector, left out while we work.
#pragma once

#include "python/object.h"

namespace janus::python {

/// No garbage collection begins while it lives. Syntax trees and code objects of ours would start
/// collections, each of which walks the objects of the program. The program would pay for them, and
/// its finalizers would run at other times than eagerly. What we make is freed without them. If
/// another thread disables collections meanwhile, they are enabled again at the end.
class GcPause {
 public:
  GcPause() : was_enabled_(PyGC_Disable() != 0) {}
  ~GcPause() {
    if (was_enabled_) PyGC_Enable();
  }
  GcPause(const GcPause&) = delete;
  GcPause& operator=(const GcPause&) = delete;

 private:
  bool was_enabled_;
};

}  // namespace janus::python
