// The ways on which a converted function's gradient is computed outside of it, and what each keeps
// of the forward run.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "execute/values/slot.h"
#include "torch/gradient_graph.h"
#include "torch/kept.h"

namespace janus::torch {

/// How the gradient of some results is computed: through all that the run computed, up to what it
/// was given; or, where other results lie on the way, only up to those, which hand it on. The
/// latter only where somebody looks at the gradient of one of them, or another gradient comes to
/// it, as what both ways need of the run would be computed twice.
struct BackwardWays {
  std::shared_ptr<GradientGraph> whole;
  std::shared_ptr<GradientGraph> apart;  ///< null: no result lies on the way
  /// In which eager would come to the differentiable inputs and cells, by index.
  std::vector<size_t> order = {};
};

/// One of the ways for one run, and what of that run it needs.
struct BackwardWay {
  explicit BackwardWay(std::shared_ptr<GradientGraph> from) : graph(std::move(from)) {}

  /// Takes what is needed from the forward run's results.
  void keep(std::span<const execute::Slot> results);

  std::shared_ptr<GradientGraph> graph;
  std::vector<Kept> saved;
  std::vector<size_t> saved_numbers;  ///< as which of the node's results they are kept
  std::vector<execute::Slot>
      unchecked;                   ///< the saved values, where several results may be given alone
  std::vector<Kept> given;         ///< what can't be computed again, then the cuts
  std::vector<Kept> results_kept;  ///< those of the node itself
  std::vector<Kept> checked;       ///< those that eager keeps
  std::vector<size_t> checked_numbers;
};

}  // namespace janus::torch
