// Collectives of a run, made by torch's process groups: as DistributedDataParallel's reducer makes
// them, and as torch.distributed's functions do.
#pragma once

#include <memory>
#include <vector>

#include "execute/library/library.h"

namespace janus::torch {

/// The operators of ops/collectives.h; null for other ones.
std::unique_ptr<execute::Operation> bind_collective(const graph::Node& node,
                                                    const execute::SymbolLookup& symbols);

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
