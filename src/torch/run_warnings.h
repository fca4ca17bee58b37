// Torch's warnings in a run (speculate/deferred_warnings.h), with the user's lines that they are
// about.
#pragma once

#include <memory>

#include "graph/source_span.h"
#include "speculate/deferred_warnings.h"

namespace janus::torch {

/// The line of the operator that is being called on this thread.
class WarningPlace {
 public:
  explicit WarningPlace(const graph::SourceSpan& span);
  ~WarningPlace();
  WarningPlace(const WarningPlace&) = delete;
  WarningPlace& operator=(const WarningPlace&) = delete;

 private:
  const graph::SourceSpan* before_;
};

/// Implements speculate::defer_warnings.
std::unique_ptr<speculate::DeferredWarnings> defer_warnings();

}  // namespace janus::torch
