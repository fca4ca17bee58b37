// How operators are computed for many rows at once: the rules that blocks name as `rows`, `adds`
// and `sum_of_rows` (OpDef). A rule that does not fit the operands gives nothing.
#pragma once

#include <vector>

#include "graph/op.h"

namespace janus::ops::for_rows {

using Results = std::vector<graph::Value*>;

/// Of elementwise operators, whose blocks need not name it.
Results elementwise(const graph::Rows& rows);

// Other shapes.
Results same_elements(const graph::Rows& rows);
Results identity(const graph::Rows& rows);
Results expand(const graph::Rows& rows);
/// Of one stacked operand along attribute `dim`.
Results along_dim(const graph::Rows& rows);
/// The same, all operands stacked.
Results along_dim_of_all(const graph::Rows& rows);
Results transpose(const graph::Rows& rows);
Results permute(const graph::Rows& rows);
/// `cat` and `stack`: operands that are one for all rows do not take part.
Results joined(const graph::Rows& rows);
/// The gradient of a slice without steps is that with zeros around it.
Results slice_backward(const graph::Rows& rows);
Results reduced(const graph::Rows& rows);
/// A tensor made of a number of each.
Results full(const graph::Rows& rows);

// Products.
Results linear(const graph::Rows& rows);
Results mm(const graph::Rows& rows);
/// A matrix that is one for all times a vector of each.
Results mv(const graph::Rows& rows);

// Rows of tensors.
Results row(const graph::Rows& rows);
Results row_backward(const graph::Rows& rows);
Results embedding(const graph::Rows& rows);

// Losses.
Results nll_loss_forward(const graph::Rows& rows);
Results nll_loss_backward(const graph::Rows& rows);
/// All are looked at together, and counted for each.
Results count_classes(const graph::Rows& rows);

// What adds something to operand 0. A sum and its factor, a product and its two factors.
bool adds_alike(const graph::Node& node);
bool adds_product(const graph::Node& node);
bool adds_always(const graph::Node& node);
graph::Value* sum(const graph::Rows& rows);
graph::Value* sum_of_products(const graph::Rows& rows);
/// Each in the row of operand 0 that its index says.
graph::Value* sum_in_rows(const graph::Rows& rows);

}  // namespace janus::ops::for_rows
