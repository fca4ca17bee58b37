// The backward version of one block: its nodes in reverse mode, and what they save of the forward
// run.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "graph/builder.h"
#include "passes/gradient/gradient_sums.h"

namespace janus::passes {

class BlockReversal {
 public:
  /// Adds an empty block to `node`, which stands for `forward` in the backward run.
  BlockReversal(graph::Graph& graph, graph::Node& node, graph::Block& forward,
                BlockDifferentiator& blocks);

  /// Appends to the backward block. Its results are set here as well.
  graph::Builder& builder() { return builder_; }
  graph::Block& block() { return backward_; }
  graph::Block& forward() { return forward_; }

  /// BlockDifferentiator::differentiate() from the forward block's nodes into the backward block.
  std::vector<graph::Value*> run(std::span<graph::Value* const> outputs,
                                 std::span<graph::Value* const> seeds,
                                 std::span<graph::Value* const> targets,
                                 std::span<graph::Value* const> sums);

  /// Once the backward block is complete: the forward block's values that have to be kept for it.
  const std::vector<graph::Value*>& find_saved();
  /// Appends to the forward block what packs them; gives the frame.
  graph::Value* pack();
  /// Replaces the forward block's values in the backward block by what `frame` holds, or by copies
  /// of their nodes. `frame`: visible in front of the backward block or a parameter of it; null if
  /// nothing is saved.
  void connect(graph::Value* frame);

 private:
  bool is_inside(const graph::Value& value) const;
  void find_crossing(const graph::Block& block);
  bool is_made_again(const graph::Node& node) const;
  void make_again(graph::Node& node);
  void save(graph::Value* value);

  graph::Graph& graph_;
  graph::Block& forward_;
  graph::Block& backward_;
  graph::Builder builder_;
  BlockDifferentiator& blocks_;
  std::unordered_set<graph::Value*> crossing_;  ///< forward values that the backward block uses
  std::vector<graph::Value*> saved_;
  std::vector<graph::Node*> again_;
};

}  // namespace janus::passes
