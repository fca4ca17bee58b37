// Forward, backward and, for higher orders, the gradients recomputed from the inputs.
#include "torch/gradient_graph.h"

#include <algorithm>
#include <unordered_map>

#include "execute/schedule.h"
#include "graph/op.h"
#include "graph/rewriter.h"
#include "kernels/kernel.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "passes/pipeline.h"
#include "torch/aten_library.h"

namespace janus::torch {

using graph::Graph;
using graph::Node;
using graph::Type;
using graph::Value;

namespace {

std::unique_ptr<execute::Program> compiled(Graph graph) {
  return execute::Program::compile(
      passes::optimise(std::move(graph), nullptr, kernels::can_compile), library());
}

/// The value that a `state` node of that cell gives; null if the graph doesn't read the cell.
Value* state_of(const Graph& graph, const std::string& cell) {
  for (const Node* node : graph.body().nodes) {
    if (node->op == &op::state && node->attributes.get<std::string>("cell") == cell) {
      return node->output();
    }
  }
  return nullptr;
}

bool is_write(const Node& node) { return node.op == &op::commit || node.op == &op::rebind; }

}  // namespace

GradientGraph::GradientGraph(Graph graph, std::vector<Result> results, std::vector<size_t> inputs,
                             std::vector<std::string> cells)
    : graph_(std::move(graph)),
      results_(std::move(results)),
      inputs_(std::move(inputs)),
      cells_(std::move(cells)),
      default_dtype_(ops::default_dtype()) {
  std::vector<size_t> indices;
  for (const Result& result : results_) indices.push_back(result.index);
  passes::SplitGradient split = passes::split_gradient(graph_, indices, inputs_, cells_);
  // A value that is saved and also a result, or saved twice, leaves the forward run once.
  std::vector<Value*>& all = split.forward.body().results;
  std::vector<Value*> once(all.begin(), all.end() - static_cast<ptrdiff_t>(split.saved_count));
  for (size_t i = once.size(), end = all.size(); i < end; ++i) {
    const auto found = std::find(once.begin(), once.end(), all[i]);
    saved_results_.push_back(static_cast<size_t>(found - once.begin()));
    if (found == once.end()) once.push_back(all[i]);
  }
  all = std::move(once);
  result_count_ = all.size();
  forward_ = std::make_unique<Graph>(std::move(split.forward));
  backward_graph_ = std::make_unique<Graph>(std::move(split.backward));
}

execute::Program& GradientGraph::backward() {
  const std::lock_guard lock(mutex_);
  const ops::DefaultDtype scope(default_dtype_);
  if (!backward_) backward_ = compiled(std::move(*backward_graph_));
  return *backward_;
}

execute::Program& GradientGraph::program() {
  const std::lock_guard lock(mutex_);
  const ops::DefaultDtype scope(default_dtype_);
  if (!program_) program_ = compiled(take_forward());
  return *program_;
}

GradientGraph& GradientGraph::recomputed() {
  const std::lock_guard lock(mutex_);
  if (recomputed_) return *recomputed_;
  const ops::DefaultDtype scope(default_dtype_);
  Graph gradients = gradients_of_inputs();
  std::vector<Result> results;
  for (size_t i = 0; i < gradients.results().size(); ++i) {
    results.push_back({i, results_.front().grad_fn_name});
  }
  std::vector<size_t> inputs = inputs_;
  for (size_t i = graph_.inputs().size(); i < gradients.inputs().size(); ++i) inputs.push_back(i);
  recomputed_ = std::make_unique<GradientGraph>(std::move(gradients), std::move(results),
                                                std::move(inputs), cells_);
  return *recomputed_;
}

Graph GradientGraph::gradients_of_inputs() const {
  std::vector<std::string> written;
  for (const Node* node : graph_.body().nodes) {
    if (is_write(*node)) written.push_back(node->attributes.get<std::string>("cell"));
    TORCHJANUS_CHECK(!has(graph::effects(*node), graph::Trait::random),
                     "create_graph through a converted function that draws random numbers");
  }
  graph::Rewriter rewriter(graph_);
  rewriter.run([](const Node& node) { return is_write(node) || node.op == &op::guard; });
  std::vector<Value*> operands, targets;
  for (const Result& result : results_)
    operands.push_back(rewriter[graph_.results()[result.index]]);
  for (const Result& result : results_) {
    operands.push_back(rewriter.builder().input(graph_.results()[result.index]->type, "gradient"));
  }
  for (size_t input : inputs_) targets.push_back(rewriter[graph_.inputs()[input]]);
  for (const std::string& cell : cells_) {
    TORCHJANUS_CHECK(std::find(written.begin(), written.end(), cell) == written.end(),
                     "create_graph through a converted function that writes to ", cell);
    Value* state = state_of(graph_, cell);
    TORCHJANUS_CHECK(state != nullptr, "the graph does not read ", cell);
    targets.push_back(rewriter[state]);
  }
  operands.insert(operands.end(), targets.begin(), targets.end());
  std::vector<Type> types;
  for (const Value* target : targets) types.push_back(target->type);
  const Node* gradient =
      rewriter.builder().append_unchecked(op::gradient, operands,
                                          {{"outputs", static_cast<int64_t>(results_.size())},
                                           {"targets", static_cast<int64_t>(targets.size())},
                                           {"create_graph", true}},
                                          std::move(types));
  Graph result = rewriter.finish();
  result.body().results = gradient->outputs;
  return result;
}

}  // namespace janus::torch
