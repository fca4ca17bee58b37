// Which nodes are deferred and batched in functions that are computed together, for many
// invocations or iterations at once.
#pragma once

#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "passes/batching/accumulators.h"
#include "passes/batching/uniform_values.h"

namespace janus::passes {

/// Functions whose invocations, or the iterations of whose loops, are computed together, and how
/// their values behave.
class Recursion {
 public:
  const std::vector<graph::Node*> functions;
  const graph::Dim rows;  ///< how many are computed together
  UniformValues uniform;
  Accumulators accumulators;

  /// `once`: those of `functions`, of this body, that run once.
  Recursion(std::vector<graph::Node*> functions, std::vector<graph::Node*> once,
            const graph::Block& body, const graph::Dim& rows);

  bool is_put_off(const graph::Node& node) const;

  /// Whether in what runs many times nothing but what is put off looks into tensors. (Who looks
  /// into one that is put off has everything computed that waits.)
  bool can_put_off();

  /// Tests of loops run as they are.
  static bool is_divided(const graph::Block& block);

 private:
  bool runs_once(const graph::Node& node) const;
  bool looks_into_tensors(const graph::Node& node);

  const std::vector<graph::Node*> once_;
  std::unordered_set<const graph::Node*> with_form_;  ///< that can be computed for many rows
};

/// Which operands of a node that adds to a sum differ from invocation to invocation; the sum is one
/// for all.
std::vector<bool> added_operands(const graph::Node& node, UniformValues& uniform);

}  // namespace janus::passes
