// Rows and other parts added up in the places that tensors of indices give: gradients of tables.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// `embedding_dense_backward`, `index_add`, and `index_put` that adds, by one tensor of indices;
/// null for other operators and dtypes.
std::unique_ptr<execute::Operation> bind_row_sums(const graph::Node& node,
                                                  const execute::SymbolLookup& symbols);

/// Adds parts of a tensor of f32 or f64 along a dimension: `indices`, i64 in order, are inside.
void add_parts(const at::Tensor& indices, const at::Tensor& source, int64_t dim, at::Tensor& out);

}  // namespace janus::torch
