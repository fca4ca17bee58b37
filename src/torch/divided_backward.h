// A backward run that is divided into parts, as a chain of autograd nodes.
//
//   results ── GraphBackward ── BucketBackward ── BucketBackward
//                 │  │  │           │  │              │  │
//                 leaves of         leaves of         leaves of
//                 part 0            part 1            part 2
//
// The engine comes to the leaves of a part, and so to DistributedDataParallel's hooks, before it
// comes to the next part: gradients of leaves go before all else. So part 1 is computed while other
// threads exchange the gradients of part 0.
//
// What one node hands on to the next travels as the gradient between them: a tensor without
// elements whose memory is a HandedOn. So each backward() has its own, also on several threads and
// with retain_graph, and whatever ends it frees it: an exception, or autograd.grad for leaves of
// earlier parts only, where the engine drops what would lead further.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "python/lock.h"
#include "torch/gradient_graph.h"
#include "torch/kept.h"
#include "torch/version.h"

namespace janus::torch {

/// What the nodes of one backward() hand on.
struct HandedOn {
  /// By their numbers (passes::BackwardPart); empty where no later part takes it.
  std::vector<execute::Slot> values;
  /// By target; undefined where it is not computed yet, or was taken.
  ::torch::autograd::variable_list gradients;
  /// By target, whether a gradient comes to it from those that backward() was called with.
  std::vector<bool> is_reached;
  /// All gradients are there already: no part computes anything.
  bool is_complete = false;
};

/// Runs a part: takes what `kept` has of the run, and the rest from `handed`, for which it puts
/// gradients and values there.
void run_part(GradientGraph& graph, size_t number, std::span<const Kept> kept,
              const NodePointer<::torch::autograd::Node>& node, HandedOn& handed);

/// What the part takes of the values that the whole backward run saved.
std::vector<Kept> kept_for(const GradientGraph& graph, size_t number, const std::vector<Kept>& all);

/// Takes the gradients of these targets out; none where no gradient comes to it, or where the edge
/// leads nowhere. With `next` the rest is handed on, behind them.
::torch::autograd::variable_list take_gradients(std::unique_ptr<HandedOn> handed,
                                                const passes::Bucket& targets,
                                                const ::torch::autograd::Node& node);

/// A part but the first, which the node of the results computes.
class BucketBackward final : public ::torch::autograd::Node {
 public:
  /// `edges`: one for each target of the part, then one to the next part, if there is one.
  BucketBackward(std::shared_ptr<GradientGraph> graph, size_t part,
                 ::torch::autograd::edge_list edges);
  ~BucketBackward() override;

  void keep(const std::vector<Kept>& all) { kept_ = kept_for(*graph_, part_, all); }
  std::string name() const override { return "BucketBackward"; }
  ::torch::autograd::variable_list apply(::torch::autograd::variable_list&& gradients) override;
  void release_variables() override;

 private:
  std::unique_ptr<python::WithLock> lock_python() const;

  std::shared_ptr<GradientGraph> graph_;
  size_t part_;
  std::mutex mutex_;
  std::vector<Kept> kept_;
};

}  // namespace janus::torch
