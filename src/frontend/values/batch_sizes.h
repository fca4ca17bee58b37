// The batch sizes of packed sequences: how many sequences each step has. The first step has all of
// them, so the first of the batch sizes is the size of the batch.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace janus::frontend {

/// The size of the batch, if the value is the first of the batch sizes of what the run packs.
std::optional<graph::Dim> batch_at_first_step(const graph::Value& value);

}  // namespace janus::frontend
