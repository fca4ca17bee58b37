// Collectives that the program has called in the run, until it has waited for them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

/// A tensor that a collective writes.
struct ReceivingTensor {
  std::shared_ptr<Tensor> tensor;
  std::optional<graph::Shape> order;  ///< of dimensions in memory, if it isn't that of indices
  uint32_t version = 0;               ///< of it, when the collective began
};

struct PendingCollective {
  std::string name;
  graph::Value* started = nullptr;
  std::vector<ReceivingTensor> receivers;
  uint32_t writes = 0;  ///< of each receiver, as eager's `_version` counts them
  bool is_done = false;
};

}  // namespace janus::frontend
