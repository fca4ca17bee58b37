// The state of autograd in an interpretation: tensors that eager's autograd tracks, leaves and
// their hooks, gradients that go through the program's own code.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_set>
#include <vector>

#include "frontend/core/custom_gradient_record.h"
#include "frontend/core/gradient_switches.h"
#include "frontend/core/parallel_models.h"
#include "frontend/core/pending_collectives.h"
#include "frontend/core/tensor_hooks.h"
#include "frontend/values/value.h"

namespace janus::frontend {

struct AutogradState {
  /// Values of tensors that eager's autograd tracks.
  std::unordered_set<const graph::Value*> differentiable;
  /// Whether some tensors require a gradient only where a recursion takes one of its ways. They are
  /// taken for tracked. Code that shows requires_grad asks shows_gradient().
  bool gradients_vary = false;
  /// Where gradients go through the program's own code, in the order in which it was reached.
  std::vector<CustomGradient> custom_gradients;

  /// Wrapped models that were called, each once.
  std::vector<ParallelModel> parallel_models;
  /// Those that the program has called, in order.
  std::vector<PendingCollective> collectives;

  // --- leaves
  /// Leaves that require grad and were made in the run.
  std::vector<std::shared_ptr<Tensor>> made_leaves;
  /// Leaves whose requires_grad was changed (frontend/autograd/requires_grad.h).
  GradientSwitches switches;
  /// Pre-existing leaves that have hooks, and the one whose hook is running.
  std::set<const Tensor*> hooked_leaves;
  const Tensor* hook_of = nullptr;
  HooksOfTensors tensor_hooks;
  /// Tensors whose `.grad` is None for the code at hand (frontend/torch_library/optimizers.cpp).
  std::set<const Tensor*> without_grad;
  /// Where gradients are clipped: whether those that only some runs have are taken to be there.
  bool clips = false, sees_all_grads = false;

  // --- memory
  /// How often tensors that existed before the call were written.
  size_t outside_writes = 0;
  /// Tensors that no other pre-existing tensor may share memory with, as if they were written.
  std::set<const Tensor*> kept_apart;
  /// Where the run made tensors: those of inference mode are of another kind.
  bool made_in_inference = false, made_outside_inference = false;
};

}  // namespace janus::frontend
