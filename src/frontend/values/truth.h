// What is known of a test.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "python/object.h"

namespace janus::frontend {

/// What is known of a test: its outcome, or the flag that the graph computes.
struct Truth {
  std::optional<bool> known;
  graph::Value* flag = nullptr;
  python::Object example;  ///< bool of the call at hand; null: only the run knows
};

}  // namespace janus::frontend
