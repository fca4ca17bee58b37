// In whose memory gradients lie that eager execution gives.
//
// Many of its derivatives hand the gradient of their result on as it is, or as a view: those of
// sums, views and copies. So a gradient may be the seed, the gradient of another tensor as well, or
// one element seen many times, and who writes to it writes there.
//
// Does:       follows the gradient of a value to the node that makes it, from rule to rule.
// Requires:   values of one block; the graph may still be built.
// Guarantees: what may be handed on counts as handed on. What it can't follow (into branches, loops
//             and functions, through operators without a rule) is not `is_known`.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

struct GradientMemory {
  bool is_known = true;
  const graph::Node* lost_in = nullptr;  ///< what it can't be followed through; null: several
  const graph::Value* of = nullptr;      ///< the value for whose gradient that memory was made
  std::optional<size_t> output = std::nullopt;  ///< the output whose seed it is
  bool is_spread = false;                       ///< several elements are one, or may be
  bool is_part_of_spread = false;               ///< it was spread before it was divided
  bool is_view = false;                         ///< another tensor there, of those elements
  /// Of concatenations that it comes from: the part that it lies in. Parts do not overlap, unless
  /// what was divided is spread.
  std::vector<std::pair<const graph::Node*, size_t>> parts = {};
};

/// For each target the memory of its gradient.
std::vector<GradientMemory> memory_of_gradients(std::span<graph::Value* const> outputs,
                                                std::span<graph::Value* const> targets);

/// Whether they lie in different parts of a concatenation.
bool are_apart(const GradientMemory& one, const GradientMemory& other);

}  // namespace janus::passes
