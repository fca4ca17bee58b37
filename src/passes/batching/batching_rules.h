// Batching rules: how an operator is computed for many rows at once. Operands and results that
// differ from row to row get one more dimension in front.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/builder.h"

namespace janus::passes {

/// The type of a value of `type` for many rows: a tensor with `rows` in front, also for numbers.
graph::Type rows_of(const graph::Type& type, const graph::Dim& rows);

/// Appends nodes that compute `node` for all rows. `inputs` stand for its operands, and `stacked`
/// says which of them have one row for each. All results have. Nothing if the operator has no rule
/// for such operands.
std::optional<std::vector<graph::Value*>> append_for_rows(graph::Builder& builder,
                                                          const graph::Node& node,
                                                          std::span<graph::Value* const> inputs,
                                                          const std::vector<bool>& stacked,
                                                          const graph::Dim& rows);

/// The operand that `node` adds something to, if it is such an operator.
std::optional<size_t> added_to(const graph::Node& node);

/// Appends nodes that add all rows to `inputs[*added_to(node)]`, which has no row dimension.
std::optional<graph::Value*> append_sum_of_rows(graph::Builder& builder, const graph::Node& node,
                                                std::span<graph::Value* const> inputs,
                                                const std::vector<bool>& stacked);

}  // namespace janus::passes
