#include "torch/backward_ways.h"

#include <algorithm>

#include "torch/tensor.h"

namespace janus::torch {

using execute::Slot;

namespace {

/// The same memory; a node that keeps its result so does not keep itself.
Slot without_grad_fn(const Slot& slot) {
  return slot.is_tensor() ? slot_of(tensor_of(slot).detach()) : slot;
}

}  // namespace

void BackwardWay::keep(std::span<const Slot> results) {
  const auto& differentiable = graph->results();
  for (const size_t index : graph->saved_results()) {
    const auto own = std::ranges::find(differentiable, index, &GradientGraph::Result::index);
    const bool is_output = own != differentiable.end();
    saved.emplace_back(results[index], is_output);
    saved_numbers.push_back(static_cast<size_t>(own - differentiable.begin()));
    if (differentiable.size() > 1)
      unchecked.push_back(is_output ? without_grad_fn(results[index]) : results[index]);
  }
  for (const size_t index : graph->unrepeatable_results())
    given.emplace_back(results[index], false);
  for (const size_t index : graph->cuts()) given.emplace_back(results[index], false);
  for (const size_t own : graph->kept_results())
    results_kept.emplace_back(results[differentiable[own].index], true);
  for (const auto& [number, flag] : graph->checked_results()) {
    if (flag && !results[*flag].boolean()) continue;
    checked_numbers.push_back(number);
    checked.emplace_back(results[differentiable[number].index], true);
  }
}

}  // namespace janus::torch
