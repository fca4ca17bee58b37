// How a generated graph's results get gradients outside of it, for speculate/differentiable.h.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "passes/lowering/decompose.h"
#include "passes/structure/copied.h"
#include "python/lock.h"
#include "speculate/differentiable.h"
#include "speculate/object_heap.h"
#include "torch/consumed_results.h"
#include "torch/gradient_graph.h"
#include "torch/gradient_stages.h"
#include "torch/graph_backward.h"
#include "torch/leaf_order.h"
#include "torch/parts.h"

namespace janus::torch {

using execute::Slot;

namespace {

class GraphDifferentiable final : public speculate::Differentiable {
 public:
  /// `stages`: the results, each behind those that lie on the way of its gradient.
  GraphDifferentiable(graph::Graph forward, std::vector<BackwardWays> stages,
                      const std::vector<GradientGraph::Result>& consumed)
      : forward_(std::move(forward)),
        result_count_(forward_.results().size()),
        stages_(std::move(stages)),
        consumed_(consumed.begin(), consumed.end()) {}

  graph::Graph take_forward() override { return std::move(forward_); }
  size_t result_count() const override { return result_count_; }
  size_t backward_parts() const override {
    size_t most = 0;
    for (const BackwardWays& stage : stages_) most = std::max(most, stage.whole->part_count());
    return most;
  }
  std::shared_ptr<execute::Findings> new_findings() const override {
    const bool needed = std::ranges::any_of(
        stages_, [](const BackwardWays& stage) { return stage.whole->needs_findings(); });
    return needed ? std::make_shared<execute::Findings>() : nullptr;
  }
  void attach(std::span<const Slot> inputs, std::span<const std::string> cell_names,
              std::span<const Slot> cells, std::span<Slot> results,
              const std::shared_ptr<execute::Findings>& findings) override {
    for (Consumed& each : consumed_) each.mark(results);
    for (const BackwardWays& stage : stages_)
      attach_node(stage, inputs, cell_names, cells, results, findings);
  }

 private:
  graph::Graph forward_;
  size_t result_count_;
  std::vector<BackwardWays> stages_;
  std::vector<Consumed> consumed_;
};

/// Inputs that are the tensor of a cell too, which the graph writes.
std::set<size_t> written_inputs(const speculate::Generated& generated) {
  std::set<size_t> written;
  for (size_t i = 0; i < generated.inputs.size(); ++i)
    for (const auto& cell : generated.cells)
      if (cell.kind == speculate::CellBinding::Kind::tensor &&
          cell.source == generated.inputs[i].source)
        written.insert(i);
  return written;
}

/// The objects that the graph names, for gradients' own gradients; the engine, which has not got
/// Python's lock, may be the last to refer to them.
std::shared_ptr<const execute::Heap> heap_of(const speculate::Generated& generated) {
  auto* const heap =
      new std::shared_ptr<const execute::Heap>(speculate::object_heap(generated.objects));
  return {heap->get(), [heap](const execute::Heap*) {
            if (Py_IsInitialized() == 0) return;
            const python::WithLock lock;
            delete heap;
          }};
}

class GraphDifferentiation final : public speculate::Differentiation {
 public:
  std::unique_ptr<speculate::Differentiable> prepare(
      const speculate::Generated& generated) override {
    std::vector<GradientGraph::Result> live, consumed;
    for (const auto& result : generated.differentiable_results) {
      (result.consumed ? consumed : live)
          .push_back({result.result, result.grad_fn_name, result.name_numbers, result.names});
    }
    // What operators are made of says which of their results lie on the way of others.
    const graph::Graph graph = passes::decompose(generated.graph);
    return in_stages(generated, graph, stages_of(graph, live), consumed);
  }

 private:
  static std::vector<size_t> order_behind(const Stage& stage,
                                          const speculate::Generated& generated) {
    const graph::Graph& graph = generated.graph;
    std::vector<graph::Value*> results;
    for (const auto& result : stage.results) results.push_back(graph.results()[result.index]);
    return order_of_leaves(results, differentiable_values(graph, generated.differentiable_inputs,
                                                          generated.differentiable_cells));
  }

  /// One after the other: each lets the forward run give what its backward run needs.
  static std::unique_ptr<speculate::Differentiable> in_stages(
      const speculate::Generated& generated, const graph::Graph& graph,
      const std::vector<Stage>& stages, const std::vector<GradientGraph::Result>& consumed) {
    graph::Graph forward = passes::copied(graph);
    const std::set<size_t> written = written_inputs(generated);
    const auto heap = heap_of(generated);
    const auto add = [&](const Stage& stage, const std::vector<size_t>& cuts) {
      auto made = std::make_shared<GradientGraph>(
          std::move(forward), stage.results, generated.differentiable_inputs,
          generated.differentiable_cells, heap, written, cuts);
      forward = made->take_forward();
      made->find_plain(generated.graph);
      return made;
    };
    std::vector<BackwardWays> ways;
    for (const Stage& stage : stages) {
      auto whole = add(stage, {});
      ways.push_back({whole, stage.cuts.empty() ? nullptr : add(stage, stage.cuts),
                      order_behind(stage, generated)});
    }
    return std::make_unique<GraphDifferentiable>(std::move(forward), std::move(ways), consumed);
  }
};

}  // namespace

speculate::Differentiation& differentiation() {
  static GraphDifferentiation instance;
  return instance;
}

}  // namespace janus::torch
