// What a report shows of a plan: what runs in which order, and how the arena is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace janus::execute {

/// Where memory of the arena lies, and from which instruction to which it is needed.
struct PieceOfMemory {
  const graph::Node* maker = nullptr;
  size_t output = 0;  ///< of these
  int64_t offset = 0, bytes = 0;
  size_t first = 0, last = 0;
};

/// What a node takes in a run, the mean of those that were timed.
struct TimedNode {
  const graph::Node* node = nullptr;
  double seconds = 0;
};

struct PlanPicture {
  /// The nodes of the instructions; null where one belongs to none.
  std::vector<const graph::Node*> order;
  std::vector<PieceOfMemory> memory;
  /// By step of the plan: the node that it belongs to; null: it belongs to none.
  std::vector<const graph::Node*> steps;
};

}  // namespace janus::execute
