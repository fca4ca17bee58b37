// Rows and other parts added up in the places that tensors of indices give: gradients of tables.
#pragma once

#include <memory>

#include "execute/library.h"

namespace janus::torch {

/// `embedding_dense_backward`, `index_add`, and `index_put` that adds, by one tensor of indices;
/// null for other operators and dtypes.
std::unique_ptr<execute::Operation> bind_row_sums(const graph::Node& node,
                                                  const execute::SymbolLookup& symbols);

}  // namespace janus::torch
