// Collectives of a run, made by torch's process groups as DistributedDataParallel's reducer makes
// them.
#pragma once

#include <memory>
#include <vector>

#include "execute/library/library.h"

namespace janus::torch {

/// `all_reduce_start`, `all_reduce_wait` and `broadcast_buffers`; null for other operators.
std::unique_ptr<execute::Operation> bind_collective(const graph::Node& node);

/// A collective that was started, and not waited for yet.
struct StartedCollective;

/// The collectives of one run on this thread. At its end it waits for those that were started: when
/// a run fails between, others would still write into its memory.
class CollectivesScope {
 public:
  CollectivesScope();
  ~CollectivesScope();
  CollectivesScope(const CollectivesScope&) = delete;
  CollectivesScope& operator=(const CollectivesScope&) = delete;

 private:
  std::vector<StartedCollective> outer_;
};

}  // namespace janus::torch
