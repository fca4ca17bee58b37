// Rows added up in the places that tensors of indices give: gradients of tables.
#pragma once

#include <memory>

#include "execute/library.h"

namespace janus::torch {

/// `embedding_dense_backward`, and `index_add` along the first dimension; null for other operators,
/// and for what ATen's do better.
std::unique_ptr<execute::Operation> bind_row_sums(const graph::Node& node,
                                                  const execute::SymbolLookup& symbols);

}  // namespace janus::torch
