// What gradient rules for nodes with blocks and for calls see of a backward run.
//
// Such a rule has blocks to differentiate in turn. The two interfaces here are what it needs for
// that; backpropagate.cpp implements them.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"

namespace janus::passes {

/// The gradients of one backward run, by value.
class GradientSums {
 public:
  virtual ~GradientSums() = default;
  virtual graph::Builder& builder() = 0;
  /// Null: zero so far.
  virtual graph::Value* gradient(const graph::Value* value) const = 0;
  /// Whether somebody wants the gradient of this value.
  virtual bool needs(const graph::Value* value) const = 0;
  virtual void add(const graph::Value* value, graph::Value* gradient) = 0;
  /// `gradient` already contains what was summed before.
  virtual void replace(const graph::Value* value, graph::Value* gradient) = 0;
};

/// Reverse mode over the nodes of a block, within one run of differentiation.
class BlockDifferentiator {
 public:
  virtual ~BlockDifferentiator() = default;
  /// Appends to `builder` what computes the gradient of `outputs`, values of `block`, with respect
  /// to `targets`. What the block uses from outside is given. `seeds`: for each output the gradient
  /// to start from. `sums`: for each target the gradient that is added to, or null. Gives one value
  /// for each target; null for a target that no output depends on.
  virtual std::vector<graph::Value*> differentiate(graph::Builder& builder,
                                                   const graph::Block& block,
                                                   std::span<graph::Value* const> outputs,
                                                   std::span<graph::Value* const> seeds,
                                                   std::span<graph::Value* const> targets,
                                                   std::span<graph::Value* const> sums) = 0;
};

}  // namespace janus::passes
