// What operators warn of inside a run: Python's warnings, as in eager, but shown behind the commit.
// torch/ implements it.
#pragma once

#include <memory>

namespace janus::speculate {

/// Holds back this thread's warnings while it lives. One that a filter makes an exception ends the
/// run, as long as that can be given up: Python raises it then. Those of a run that was given up
/// are dropped, as Python comes to them again.
class DeferredWarnings {
 public:
  virtual ~DeferredWarnings() = default;
  /// Holds back no more, and shows what was held. Throws python::ErrorSet if that raises.
  virtual void show() = 0;
};

/// Set once by torch/ at start-up; null without it.
std::unique_ptr<DeferredWarnings> defer_warnings();
void set_warnings_deferrer(std::unique_ptr<DeferredWarnings> (*hold)());

}  // namespace janus::speculate
