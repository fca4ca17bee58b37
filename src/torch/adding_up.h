// Where gradients of several converted functions meet in one backward().
#pragma once

#include <torch/csrc/autograd/function.h>

#include <span>

namespace janus::torch {

/// An autograd node whose gradient may go through the whole run at once, or end at results that lie
/// on the way.
class MayGoApart {
 public:
  virtual ~MayGoApart() = default;
  /// The edges to these results.
  virtual std::span<const ::torch::autograd::Edge> cuts() const = 0;
};

/// Whether the backward() at hand brings a gradient to a result on the node's way from elsewhere
/// too, as from another such node that goes apart. Eager adds the two before it goes on from there:
/// each by itself, an infinite slope would meet a gradient of 0.
bool adds_up(const MayGoApart& node);

}  // namespace janus::torch
