// Forward, backward and, for higher orders, the gradients recomputed from the inputs.
#include "torch/gradient_graph.h"

#include <algorithm>
#include <unordered_set>

#include "execute/schedule.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/rewriter.h"
#include "kernels/kernel.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/reachability.h"
#include "torch/aten_library.h"

namespace janus::torch {

using graph::Graph;
using graph::Node;
using graph::Type;
using graph::Value;

namespace {

std::unique_ptr<execute::Program> compiled(Graph graph) {
  Graph optimised = passes::optimise(std::move(graph), nullptr, kernels::can_compile);
  kernels::compile_all(optimised);
  return execute::Program::compile(std::move(optimised), library());
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

bool draws_inside(const Node& node) {
  bool found = false;
  for (const auto& block : node.blocks)
    graph::for_each_node(*block, [&](const Node& nested) { found |= execute::draws(nested); });
  return found;
}

/// Everything that the values are computed from, through blocks too.
std::unordered_set<const Value*> sources_of(std::vector<const Value*> values) {
  std::unordered_set<const Value*> seen(values.begin(), values.end());
  const auto visit = [&](const Value* value) {
    if (seen.insert(value).second) values.push_back(value);
  };
  while (!values.empty()) {
    const Node* node = values.back()->definition;
    values.pop_back();
    if (node == nullptr) continue;
    for (const Value* input : node->inputs) visit(input);
    for (const auto& block : node->blocks) {
      graph::for_each_node(*block, [&](const Node& nested) {
        for (const Value* input : nested.inputs) visit(input);
        for (const auto& inner : nested.blocks)
          for (const Value* result : inner->results) visit(result);
      });
      for (const Value* result : block->results) visit(result);
    }
  }
  return seen;
}

}  // namespace

GradientGraph::GradientGraph(Graph graph, std::vector<Result> results, std::vector<size_t> inputs,
                             std::vector<std::string> cells, std::set<size_t> written,
                             std::vector<size_t> cuts)
    : graph_(passes::decompose(graph)),
      results_(std::move(results)),
      inputs_(std::move(inputs)),
      cells_(std::move(cells)),
      written_(std::move(written)),
      cuts_(std::move(cuts)),
      default_dtype_(ops::default_dtype()) {
  find_unrepeatable();
  return_unrepeatable();
  std::vector<size_t> indices;
  for (const Result& result : results_) indices.push_back(result.index);
  passes::SplitGradient split = passes::split_gradient(graph_, indices, inputs_, cells_, cuts_);
  ends_ = passes::cut_gradients(graph_, cuts_);
  find_reach();
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

void GradientGraph::find_reach() {
  std::vector<Value*> targets;
  for (const size_t input : inputs_) targets.push_back(graph_.inputs()[input]);
  for (const std::string& cell : cells_) {
    targets.push_back(state_of(graph_, cell));
    TORCHJANUS_CHECK(targets.back() != nullptr, "the graph does not read ", cell);
  }
  targets.insert(targets.end(), ends_.begin(), ends_.end());
  for (const Result& result : results_) {
    Value* from = graph_.results()[result.index];
    reaches_.push_back(passes::reachable(std::span(&from, 1), targets));
  }
}

/// Finds what computing the results again could not give again.
void GradientGraph::find_unrepeatable() {
  std::vector<const Value*> roots;
  for (const Result& result : results_) roots.push_back(graph_.results()[result.index]);
  const std::unordered_set<const Value*> used = sources_of(std::move(roots));
  std::set<std::string> written;
  for (const Node* node : graph_.body().nodes)
    if (node->op == &op::commit) written.insert(node->attributes.get<std::string>("cell"));
  for (const size_t input : written_)
    if (used.contains(graph_.inputs()[input])) unrepeatable_.push_back(graph_.inputs()[input]);
  for (const Node* node : graph_.body().nodes) {
    if (node->op != &op::state &&
        std::ranges::none_of(node->outputs, [&](Value* value) { return used.contains(value); }))
      unused_.insert(node);
    const bool is_overwritten =
        node->op == &op::state && written.contains(node->attributes.get<std::string>("cell"));
    const bool draws = execute::draws(*node);
    for (Value* output : node->outputs) {
      if (!used.contains(output)) continue;
      draws_in_block_ |= draws_inside(*node);
      if (draws || is_overwritten) unrepeatable_.push_back(output);
    }
  }
}

/// Makes them results of the graph; copies, as what they are now will be overwritten.
void GradientGraph::return_unrepeatable() {
  graph::Builder builder(graph_);
  std::vector<Value*>& results = graph_.body().results;
  for (Value* value : unrepeatable_) {
    unrepeatable_results_.push_back(results.size());
    const bool is_drawn = value->definition != nullptr && execute::draws(*value->definition);
    results.push_back(is_drawn || !value->type.is_tensor() ? value : op::clone(builder, {value}));
  }
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
  const size_t first_cut = graph_.inputs().size() + unrepeatable_.size();
  for (size_t i = first_cut; i < gradients.inputs().size(); ++i) inputs.push_back(i);
  recomputed_ = std::make_unique<GradientGraph>(std::move(gradients), std::move(results),
                                                std::move(inputs), cells_);
  return *recomputed_;
}

bool GradientGraph::is_repeatable() const {
  return !draws_in_block_ && std::ranges::all_of(graph_.body().nodes, [&](const Node* node) {
    return unused_.contains(node) || graph::functions_run_by(*node).empty();
  });
}

Graph GradientGraph::gradients_of_inputs() const {
  TORCHJANUS_CHECK(is_repeatable(), "create_graph: the run can't be repeated");
  graph::Rewriter rewriter(graph_);
  for (const auto* given : {&unrepeatable_, &ends_})
    for (Value* value : *given)
      rewriter.set(value, rewriter.builder().input(value->type, value->name));
  // What the results do not depend on is left out: it might draw numbers once more.
  Value* const nothing = rewriter.builder().none();
  rewriter.run([&](const Node& node) {
    if (is_write(node) || node.op == &op::guard) return true;
    if (unused_.contains(&node)) {
      for (const Value* output : node.outputs)
        if (!rewriter.has(output)) rewriter.set(output, nothing);
      return true;
    }
    const bool is_known = std::ranges::any_of(
        node.outputs, [&](const Value* output) { return rewriter.has(output); });
    const bool is_end =
        node.op == &op::detach && std::ranges::find(ends_, node.output()) != ends_.end();
    return is_known && (node.op == &op::state || execute::draws(node) || is_end);
  });
  std::vector<Value*> operands, targets;
  for (const Result& result : results_)
    operands.push_back(rewriter[graph_.results()[result.index]]);
  for (const Result& result : results_) {
    operands.push_back(rewriter.builder().input(graph_.results()[result.index]->type, "gradient"));
  }
  for (size_t input : inputs_) targets.push_back(rewriter[graph_.inputs()[input]]);
  for (const std::string& cell : cells_) {
    Value* state = state_of(graph_, cell);
    TORCHJANUS_CHECK(state != nullptr, "the graph does not read ", cell);
    targets.push_back(rewriter[state]);
  }
  for (const Value* end : ends_) targets.push_back(rewriter[end]);
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
