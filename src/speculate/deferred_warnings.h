// Warnings of operators inside a run. They are Python's warnings, as in eager, but are shown after
// the commit. torch/ implements this.
#pragma once

#include <memory>

namespace janus::speculate {

/// Defers this thread's warnings while it lives. If a filter turns one into an exception, the run
/// bails out, as long as it can, and Python raises the exception. Warnings of a run that bailed out
/// are dropped, since Python issues them again.
class DeferredWarnings {
 public:
  virtual ~DeferredWarnings() = default;
  /// Ends the deferral and shows the warnings. Throws python::ErrorSet if that raises.
  virtual void show() = 0;
};

/// Null before torch/ has set its implementation at start-up.
std::unique_ptr<DeferredWarnings> defer_warnings();
void set_warnings_deferrer(std::unique_ptr<DeferredWarnings> (*hold)());

}  // namespace janus::speculate
