// Forward, backward and, for higher orders, the gradients recomputed from the inputs.
#include "torch/gradient_graph.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <span>
#include <unordered_set>

#include "execute/code/schedule.h"
#include "graph/cost.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/rewriter.h"
#include "kernels/compilation.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "ops/python.h"
#include "passes/cleanup/common_subexpressions.h"
#include "passes/gradient/absent_gradients.h"
#include "passes/gradient/active_nodes.h"
#include "passes/gradient/differentiate.h"
#include "passes/gradient/kept_results.h"
#include "passes/gradient/reachable.h"
#include "passes/gradient/split_gradient.h"
#include "passes/lowering/decompose.h"
#include "passes/pipeline/pipeline.h"
#include "passes/reach/gradient_edges.h"
#include "passes/structure/captures.h"
#include "passes/structure/copied.h"
#include "passes/structure/replace_uses.h"
#include "torch/aten_library.h"

namespace janus::torch {

using graph::Graph;
using graph::Node;
using graph::Type;
using graph::Value;

namespace {

std::unique_ptr<execute::Program> compiled(Graph graph, std::shared_ptr<const execute::Heap> heap) {
  Graph optimised = passes::optimise(std::move(graph), nullptr, kernels::can_compile);
  kernels::compile_all(optimised);
  return execute::Program::compile(std::move(optimised), library(), std::move(heap));
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

/// Whether something in the node's blocks, or in functions that it runs, fulfils the condition.
template <class Condition>
bool runs_inside(const Node& node, const Condition& condition) {
  bool found = false;
  graph::for_each_run(node, [&](const Node& run) { found |= &run != &node && condition(run); });
  return found;
}

bool reads_heap(const Node& node) { return node.op->is(graph::Trait::reads_heap); }

/// As the operator says; of a branch, loop or call, if it is so for all that may run there.
bool has_plain_gradient(const Node& node) {
  bool is_plain = true;
  graph::for_each_run(node, [&](const Node& run) {
    const bool is_control = !run.blocks.empty() || run.op == &op::call;
    if (!is_control && passes::passes_gradient(run)) is_plain &= run.op->has_plain_gradient;
  });
  return is_plain;
}

/// Whether the view was taken of a `detach`: eager's `.data` has versions of its own.
bool is_detached(const Value* view, const Value* base) {
  for (; view != base; view = view->definition->inputs.front())
    if (view->definition->op == &op::detach) return true;
  return false;
}

/// Everything that some values are computed from, through blocks and functions too.
class Sources {
 public:
  void add(const Value* value) {
    visit(value);
    while (!pending_.empty()) {
      const Node* node = pending_.back();
      pending_.pop_back();
      graph::for_each_run(*node, [&](const Node& run) {
        for (const Value* input : run.inputs) visit(input);
        visit_results(run);
      });
      for (const Node* function : graph::functions_run_by(*node)) {
        nodes_.insert(function);
        visit_results(*function);
      }
    }
  }

  bool contains(const Value* value) const { return values_.contains(value); }
  /// A node of the body, a function too.
  bool contains(const Node* node) const { return nodes_.contains(node); }

 private:
  void visit(const Value* value) {
    if (!values_.insert(value).second || value->definition == nullptr) return;
    if (nodes_.insert(value->definition).second) pending_.push_back(value->definition);
  }

  void visit_results(const Node& node) {
    for (const auto& block : node.blocks)
      for (const Value* result : block->results) visit(result);
  }

  std::unordered_set<const Value*> values_;
  std::unordered_set<const Node*> nodes_;
  std::vector<const Node*> pending_;
};

}  // namespace

std::vector<Value*> differentiable_values(const Graph& graph, const std::vector<size_t>& inputs,
                                          const std::vector<std::string>& cells) {
  std::vector<Value*> values;
  for (const size_t input : inputs) values.push_back(graph.inputs()[input]);
  for (const std::string& cell : cells) {
    values.push_back(state_of(graph, cell));
    TORCHJANUS_CHECK(values.back() != nullptr, "the graph does not read ", cell);
  }
  return values;
}

GradientGraph::GradientGraph(Graph graph, std::vector<Result> results, std::vector<size_t> inputs,
                             std::vector<std::string> cells,
                             std::shared_ptr<const execute::Heap> heap, std::set<size_t> written,
                             std::vector<size_t> cuts)
    : graph_(passes::decompose(graph)),
      results_(std::move(results)),
      inputs_(std::move(inputs)),
      cells_(std::move(cells)),
      written_(std::move(written)),
      cuts_(std::move(cuts)),
      heap_(std::move(heap)),
      default_dtype_(ops::default_dtype()) {
  find_unrepeatable();
  return_unrepeatable();
  find_checked_results();
  std::vector<size_t> indices;
  for (const Result& result : results_) indices.push_back(result.index);
  passes::SplitGradient split = passes::split_gradient(graph_, indices, inputs_, cells_, cuts_);
  ends_ = passes::cut_gradients(graph_, cuts_);
  find_reach();
  find_shared_saved();
  find_kept_results();
  find_leaves(split.forward, split.saved_count);
  find_saved_views(split.forward, split.saved_count);
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
  std::vector<Value*> targets = differentiable_values(graph_, inputs_, cells_);
  targets.insert(targets.end(), ends_.begin(), ends_.end());
  for (const Result& result : results_) {
    Value* from = graph_.results()[result.index];
    reaches_.push_back(passes::reachable(std::span(&from, 1), targets));
  }
}

void GradientGraph::find_plain(const Graph& written) {
  std::vector<Value*> targets = differentiable_values(written, inputs_, cells_);
  for (const size_t cut : cuts_) targets.push_back(written.results()[cut]);
  for (const Result& result : results_) {
    Value* from = written.results()[result.index];
    const passes::ActiveNodes active(written.value_count(), std::span(&from, 1), targets,
                                     &written.body());
    std::unordered_set<const Value*> behind_others;  // which some other operator leads to
    for (const Node* node : std::views::reverse(active.nodes())) {
      const bool is_behind = std::ranges::any_of(
          node->outputs, [&](const Value* output) { return behind_others.contains(output); });
      if (!is_behind && has_plain_gradient(*node)) continue;
      for (const Value* operand : passes::operands(*node)) behind_others.insert(operand);
    }
    plain_.emplace_back();
    for (const Value* target : targets) plain_.back().push_back(!behind_others.contains(target));
  }
}

void GradientGraph::find_shared_saved() {
  std::vector<Value*> targets = differentiable_values(graph_, inputs_, cells_);
  targets.insert(targets.end(), ends_.begin(), ends_.end());
  std::vector<std::set<const Node*>> saving;
  std::vector<bool> raises;  // a second backward() of the result, whatever branches and loops keep
  for (const Result& result : results_) {
    Value* from = graph_.results()[result.index];
    saving.emplace_back();
    raises.push_back(false);
    const passes::ActiveNodes active(graph_.value_count(), std::span(&from, 1), targets,
                                     &graph_.body());
    for (const Node* node : active.nodes()) {
      const graph::Saves saves = graph::saves_of(*node->op);
      if (saves == graph::Saves::nothing) continue;
      saving.back().insert(node);
      raises.back() = raises.back() || (node->blocks.empty() && saves != graph::Saves::unstated);
    }
  }
  for (size_t r = 0; r < saving.size(); ++r) {
    shares_saved_.emplace_back();
    for (size_t other = 0; other < saving.size(); ++other)
      shares_saved_[r].push_back(r == other ? raises[r]
                                            : std::ranges::any_of(saving[r], [&](const Node* node) {
                                                return saving[other].contains(node);
                                              }));
  }
}

void GradientGraph::find_kept_results() {
  for (size_t i = 0; i < results_.size(); ++i) {
    const Value* value = graph_.results()[results_[i].index];
    if (value->type.is_tensor() && value->definition != nullptr &&
        graph::saves_of(*value->definition->op) == graph::Saves::result)
      kept_results_.push_back(i);
  }
}

void GradientGraph::find_checked_results() {
  for (size_t i = 0; i < results_.size(); ++i) {
    const Value* value = graph_.results()[results_[i].index];
    if (!value->type.is_tensor()) continue;
    const passes::IsKept kept = passes::is_kept_by_gradient(graph_, *value);
    if (kept.known == false) continue;
    checked_results_.push_back({.result = i});
    if (kept.flag == nullptr) continue;
    checked_results_.back().flag = graph_.results().size();
    graph_.body().results.push_back(kept.flag);
  }
}

/// Finds what the results depend on, and what of that computing them again could not give again.
void GradientGraph::find_unrepeatable() {
  Sources used;
  for (const Result& result : results_) used.add(graph_.results()[result.index]);
  std::set<std::string> written;
  for (const Node* node : graph_.body().nodes) {
    if (node->op == &op::commit) written.insert(node->attributes.get<std::string>("cell"));
    if (!used.contains(node)) continue;
    draws_in_block_ |= runs_inside(*node, execute::draws);
    reads_clock_in_block_ |= runs_inside(*node, ops::reads_clock);
    reads_heap_ |= reads_heap(*node) || runs_inside(*node, reads_heap);
  }
  if (draws_in_block_) {  // all are made again: who gets which numbers is decided by their order
    for (const Node* node : graph_.body().nodes)
      if (execute::draws(*node) || runs_inside(*node, execute::draws))
        for (const Value* output : node->outputs) used.add(output);
  }
  for (const size_t input : written_)
    if (used.contains(graph_.inputs()[input])) unrepeatable_.push_back(graph_.inputs()[input]);
  for (const Node* node : graph_.body().nodes) {
    if (!used.contains(node)) {
      if (node->op != &op::state) unused_.insert(node);
      continue;
    }
    const bool is_overwritten =
        node->op == &op::state && written.contains(node->attributes.get<std::string>("cell"));
    if (!is_overwritten && (draws_in_block_ || !execute::draws(*node))) continue;
    for (Value* output : node->outputs)
      if (used.contains(output)) unrepeatable_.push_back(output);
    if (node->op != &op::opaque) continue;
    // Given to the graph instead of computed by it, its results have no gradient any more.
    const std::vector<bool> leads_to_input =
        passes::reachable(node->outputs, differentiable_values(graph_, inputs_, cells_));
    if (std::ranges::find(leads_to_input, true) != leads_to_input.end()) has_no_second_ = true;
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

const GradientGraph::Backward& GradientGraph::backward(const std::vector<bool>& given) {
  const std::lock_guard lock(mutex_);
  const ops::DefaultDtype scope(default_dtype_);
  const bool is_whole = std::ranges::find(given, false) == given.end();
  if (!is_whole && !backward_.contains(given) && backward_.size() > kMostBackwardRuns) {
    if (!told_backward_.program)
      told_backward_ = compiled_backward(
          passes::with_absence_at_run_time(*backward_graph_, results_.size()), true);
    return told_backward_;
  }
  Backward& made = backward_[given];
  if (!made.program)
    made = compiled_backward(passes::without_absent_gradients(*backward_graph_, given), false);
  return made;
}

GradientGraph::Backward GradientGraph::compiled_backward(Graph graph, bool is_told) const {
  Backward made{compiled(std::move(graph), nullptr), {}, is_told};
  std::unordered_set<const Value*> used;
  const Graph& of = made.program->graph();
  used.insert(of.results().begin(), of.results().end());
  graph::for_each_node(of.body(), [&](const graph::Node& node) {
    used.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& block : node.blocks) used.insert(block->results.begin(), block->results.end());
  });
  for (const Value* input : of.inputs().first(saved_results_.size()))
    made.uses.push_back(used.contains(input));
  return made;
}

/// What backward saves may be a leaf itself.
void GradientGraph::find_leaves(const Graph& forward, size_t saved_count) {
  const std::vector<Value*> targets = differentiable_values(forward, inputs_, cells_);
  const auto results = forward.results();
  for (const Value* saved : results.last(saved_count)) {
    const auto leaf = std::ranges::find(targets, passes::viewed(saved));
    leaf_of_input_.push_back(leaf == targets.end()
                                 ? std::nullopt
                                 : std::optional(static_cast<size_t>(leaf - targets.begin())));
    knows_leaves_ &= !passes::may_be_other_view(saved, targets);
  }
  leaf_of_input_.resize(saved_count + results_.size());
}

void GradientGraph::find_saved_views(const Graph& forward, size_t saved_count) {
  const std::span<Value* const> inputs = forward.inputs();
  const auto saved = forward.results().last(saved_count);
  for (size_t i = 0; i < saved_count; ++i) {
    const Value* const base = passes::viewed(saved[i]);
    if (base == saved[i] || is_detached(saved[i], base)) continue;
    const auto input = std::ranges::find(inputs, base);
    if (input != inputs.end())
      saved_views_.push_back({.saved = i, .input = static_cast<size_t>(input - inputs.begin())});
    else if (base->definition != nullptr && base->definition->op == &op::state)
      saved_views_.push_back(
          {.saved = i, .cell = base->definition->attributes.get<std::string>("cell")});
  }
}

void GradientGraph::divide(const std::vector<size_t>& order, const std::vector<bool>& leaves,
                           const passes::BucketNumbers& numbers) {
  std::call_once(divided_, [&] {
    is_divided_ = true;
    if (!knows_leaves_) return;
    const int64_t forced = forced_part_bytes;
    passes::BucketLimits limits = kPartLimits;
    if (forced > 0) limits.first = limits.rest = forced;
    const Graph backward = passes::merge_common_subexpressions(*backward_graph_);
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < leaves.size(); ++i)
      bytes.push_back(leaves[i] ? graph::typical_bytes(backward.results()[i]->type) : 0);
    const bool is_known = forced == 0 && !numbers.empty();
    const auto buckets = is_known ? passes::buckets_of(order, bytes, limits, numbers)
                                  : passes::buckets_of(order, bytes, limits);
    parts_ = passes::divide_backward(backward, buckets, leaf_of_input_);
    value_count_ = backward.inputs().size();
    for (const passes::BackwardPart& part : parts_) value_count_ += part.gives.size();
    part_programs_.resize(parts_.size());
    part_count_ = std::max<size_t>(parts_.size(), 1);
  });
}

execute::Program& GradientGraph::part(size_t number) {
  const std::lock_guard lock(mutex_);
  const ops::DefaultDtype scope(default_dtype_);
  std::unique_ptr<execute::Program>& program = part_programs_[number];
  if (!program) program = compiled(passes::copied(parts_[number].graph), nullptr);
  return *program;
}

execute::Program& GradientGraph::program() {
  const std::lock_guard lock(mutex_);
  const ops::DefaultDtype scope(default_dtype_);
  if (!program_) program_ = compiled(take_forward(), heap_);
  return *program_;
}

GradientGraph* GradientGraph::recomputed(const std::vector<bool>& given) {
  const std::lock_guard lock(mutex_);
  if (has_no_second_ || reads_clock_in_block_) return nullptr;
  const std::vector<bool> counted = is_of_gradients_ ? std::vector(given.size(), true) : given;
  const auto [made, is_new] = recomputed_.try_emplace(counted);
  if (!is_new) return made->second.get();
  const ops::DefaultDtype scope(default_dtype_);
  try {
    Graph gradients = gradients_of_inputs(counted);
    std::vector<Result> results;
    for (size_t i = 0; i < gradients.results().size(); ++i)
      results.push_back({i, results_.front().grad_fn_name});
    std::vector<size_t> inputs = inputs_;
    const size_t first_cut = graph_.inputs().size() + unrepeatable_.size();
    for (size_t i = first_cut; i < gradients.inputs().size(); ++i) inputs.push_back(i);
    made->second = std::make_unique<GradientGraph>(std::move(gradients), std::move(results),
                                                   std::move(inputs), cells_, heap_);
    made->second->is_of_gradients_ = true;
  } catch (const graph::TypeError&) {  // it stays null
  }
  return made->second.get();
}

Graph GradientGraph::gradients_of_inputs(const std::vector<bool>& given) const {
  graph::Rewriter rewriter(graph_);
  for (const auto* known : {&unrepeatable_, &ends_})
    for (Value* value : *known)
      rewriter.set(value, rewriter.builder().input(value->type, value->name));
  // What the results do not depend on is left out.
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
  std::vector<Value*> again, kept, operands, gradients, targets;
  for (const Result& result : results_) again.push_back(rewriter[graph_.results()[result.index]]);
  for (const size_t i : kept_results_)
    kept.push_back(rewriter.builder().input(again[i]->type, again[i]->name));
  for (size_t i = 0; i < results_.size(); ++i) {
    Value* const gradient = rewriter.builder().input(again[i]->type, "gradient");
    if (!given[i]) continue;
    operands.push_back(again[i]);
    gradients.push_back(gradient);
  }
  const auto outputs = static_cast<int64_t>(operands.size());
  operands.insert(operands.end(), gradients.begin(), gradients.end());
  for (Value* value : differentiable_values(graph_, inputs_, cells_))
    targets.push_back(rewriter[value]);
  for (const Value* end : ends_) targets.push_back(rewriter[end]);
  operands.insert(operands.end(), targets.begin(), targets.end());
  std::vector<Type> types;
  for (const Value* target : targets) types.push_back(target->type);
  const Node* gradient =
      rewriter.builder().append_unchecked(op::gradient, operands,
                                          {{"outputs", outputs},
                                           {"targets", static_cast<int64_t>(targets.size())},
                                           {"create_graph", true}},
                                          std::move(types));
  std::vector<Value*> results = gradient->outputs;
  for (const size_t i : kept_results_) results.push_back(again[i]);
  results.insert(results.end(), kept.begin(), kept.end());
  Graph made = rewriter.finish();
  made.body().results = std::move(results);
  return with_kept_results(made, kept.size());
}

/// The gradients, expanded: what each of them saves is its own. The last results of the graph are
/// `count` results of the run as they are computed again, and as they are given: gradients are
/// computed from the latter.
Graph GradientGraph::with_kept_results(const Graph& gradients, size_t count) {
  Graph expanded = passes::differentiate(gradients);
  std::vector<Value*>& results = expanded.body().results;
  const size_t first = results.size() - 2 * count;
  for (size_t i = first; i < first + count; ++i)
    passes::replace_uses(expanded.body(), results[i], results[i + count]);
  results.resize(first);
  return expanded;
}

}  // namespace janus::torch
