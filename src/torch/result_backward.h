// An autograd node that hands gradients on as they are.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <string>
#include <utility>

namespace janus::torch {

/// Gives one of several results the name of its own grad_fn: passes the gradient on.
class ResultBackward final : public ::torch::autograd::Node {
 public:
  ResultBackward(std::string name, ::torch::autograd::Edge next)
      : Node(::torch::autograd::edge_list{std::move(next)}), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  ::torch::autograd::variable_list apply(::torch::autograd::variable_list&& gradients) override {
    return std::move(gradients);
  }

 private:
  std::string name_;
};

}  // namespace janus::torch
