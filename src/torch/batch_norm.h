// Batch normalisation with the batch's own statistics, forward and backward.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// The operation for `batch_norm_train` and `native_batch_norm_backward` nodes, null for others.
std::unique_ptr<execute::Operation> bind_batch_norm(const graph::Node& node,
                                                    const execute::SymbolLookup& symbols);

}  // namespace janus::torch
