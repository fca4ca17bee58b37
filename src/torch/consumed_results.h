// Results whose backward pass has run inside of the graph.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <array>
#include <span>
#include <string>
#include <utility>

#include "execute/values/slot.h"
#include "torch/gradient_graph.h"
#include "torch/version.h"

namespace janus::torch {

/// The grad_fn of a result whose backward has run, and freed what it needs.
class ConsumedBackward final : public ::torch::autograd::Node {
 public:
  explicit ConsumedBackward(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  /// Raises what eager's second backward() does.
  ::torch::autograd::variable_list apply(::torch::autograd::variable_list&&) override;

 private:
  std::string name_;
};

/// Gives results such a grad_fn. Nodes of results that are gone are taken again.
class Consumed {
 public:
  explicit Consumed(GradientGraph::Result result) : result_(std::move(result)) {}

  void mark(std::span<const execute::Slot> results);

 private:
  using Pointer = NodePointer<ConsumedBackward>;

  void mark(const execute::Slot& slot, const std::string& name);
  Pointer node_for(const at::Tensor& tensor, const std::string& name);

  GradientGraph::Result result_;
  std::array<Pointer, 3> spare_;  // the last result is alive while the next one is made
  size_t next_ = 0;
};

}  // namespace janus::torch
