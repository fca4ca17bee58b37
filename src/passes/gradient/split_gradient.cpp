// See split_gradient.h.
#include "passes/gradient/split_gradient.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "graph/builder.h"
#include "graph/copier.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "passes/cleanup/common_subexpressions.h"
#include "passes/cleanup/loop_invariant_code_motion.h"
#include "passes/gradient/backpropagate.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/lowering/late_relu.h"
#include "passes/runner/runner.h"
#include "passes/structure/captures.h"
#include "passes/structure/copied.h"
#include "passes/structure/replace_uses.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Trait;
using graph::Value;

/// The `state` nodes of a cell.
std::vector<Value*> states_of(const graph::Graph& graph, const std::string& cell) {
  std::vector<Value*> states;
  for (const Node* node : graph.body().nodes)
    if (node->op == &op::state && node->attributes.get<std::string>("cell") == cell)
      states.push_back(node->output());
  return states;
}

/// A forward graph at whose end the backward run has been appended.
struct Joint {
  graph::Graph graph;
  const Node* last = nullptr;     ///< of the forward run's nodes; null if there are none
  std::vector<Value*> seeds;      ///< parameters of the body that the forward run lacks
  std::vector<Value*> gradients;  ///< results of the backward run
  std::vector<Value*> ends;       ///< of gradients: what goes on from the cuts
};

/// With what has to be done, or pays, before a graph is differentiated. Reads of one cell become
/// one value, so that its gradient is one sum.
graph::Graph prepared(const graph::Graph& original) {
  constexpr auto required = PassRunner::Need::required;
  PassRunner run;
  graph::Graph graph = run("decompose", decompose, copied(original), required);
  graph = run("late_relu", late_relu, std::move(graph));
  graph = run("hoist", move_loop_invariants, std::move(graph));
  graph = run("differentiate", differentiate, std::move(graph), required);
  return run("merge_common", merge_common_subexpressions, std::move(graph), required);
}

Joint differentiate_whole(const graph::Graph& original, const std::vector<size_t>& results,
                          const std::vector<size_t>& inputs, const std::vector<std::string>& cells,
                          const std::vector<size_t>& cuts) {
  Joint joint{prepared(original), nullptr, {}, {}, {}};
  graph::Graph& graph = joint.graph;
  joint.ends = cut_gradients(graph, cuts);
  if (!graph.body().nodes.empty()) joint.last = graph.body().nodes.back();
  graph::Builder builder(graph);

  std::vector<Value*> outputs, targets;
  for (const size_t result : results) outputs.push_back(graph.results()[result]);
  for (const size_t input : inputs) targets.push_back(graph.inputs()[input]);
  for (const std::string& cell : cells) {
    const std::vector<Value*> states = states_of(graph, cell);
    TORCHJANUS_CHECK(states.size() == 1, "split_gradient: cell ", cell, " is read ", states.size(),
                     " times");
    targets.push_back(states.front());
  }
  targets.insert(targets.end(), joint.ends.begin(), joint.ends.end());
  for (const Value* output : outputs)
    joint.seeds.push_back(builder.input(output->type, "d_" + output->name));
  joint.gradients = backpropagate(builder, outputs, joint.seeds, targets);
  for (size_t i = 0; i < targets.size(); ++i)
    if (joint.gradients[i] == nullptr) joint.gradients[i] = filled(builder, targets[i]->type, 0);
  return joint;
}

/// Takes the backward run out of a joint graph.
class Split {
 public:
  explicit Split(Joint joint)
      : joint_(std::move(joint)), backward_(joint_.graph.name() + "_backward") {
    auto& nodes = joint_.graph.body().nodes;
    // Differentiation also puts nodes in front of loops: only what stands behind the last is new.
    const auto last = std::ranges::find(nodes, joint_.last);
    const auto border = last == nodes.end() ? nodes.begin() : std::next(last);
    own_.assign(border, nodes.end());
    nodes.erase(border, nodes.end());
    is_own_.insert(own_.begin(), own_.end());
    is_seed_.insert(joint_.seeds.begin(), joint_.seeds.end());
  }

  SplitGradient run() {
    find_live();
    find_saved();
    build_forward();
    build_backward();
    return {std::move(joint_.graph), std::move(backward_), saved_.size() + symbols_.size()};
  }

 private:
  /// The backward run's nodes that a gradient needs, and the forward values that those use.
  void find_live() {
    std::unordered_set<const Node*> needed;
    const auto use = [&](Value* value) {
      if (value->definition != nullptr && is_own_.contains(value->definition))
        needed.insert(value->definition);
      else if (!is_seed_.contains(value))
        crossing_.insert(value);
    };
    std::ranges::for_each(joint_.gradients, use);
    for (auto node = own_.rbegin(); node != own_.rend(); ++node)
      if (needed.contains(*node)) std::ranges::for_each(operands(**node), use);
    std::erase_if(own_, [&](const Node* node) { return !needed.contains(node); });
    for (const Node* node : own_)
      for (Node* function : graph::functions_run_by(*node))
        if (std::ranges::find(functions_, function) == functions_.end())
          functions_.push_back(function);
  }

  /// Divides what crosses the border into what is saved and what is made again.
  void find_saved() {
    // From the last definition to the first: what a view is made of may be added on the way.
    while (!crossing_.empty()) {
      Value* value = *std::prev(crossing_.end());
      crossing_.erase(std::prev(crossing_.end()));
      if (!is_made_again(*value)) {
        if (value->type.kind == graph::Type::Kind::object)
          throw graph::TypeError("gradient: a backward run would need an object of Python's");
        saved_.push_back(value);
        continue;
      }
      again_.push_back(value->definition);
      crossing_.insert(value->definition->inputs.begin(), value->definition->inputs.end());
    }
    std::ranges::reverse(saved_);
    std::ranges::reverse(again_);
  }

  bool is_made_again(const Value& value) const {
    const Node* node = value.definition;
    if (node == nullptr || !node->op->is(Trait::pure) || !node->blocks.empty() ||
        node->op->is(Trait::random) || node->op == &op::state || node->outputs.size() != 1)
      return false;
    if (node->inputs.empty()) return true;
    const bool is_view = node->op->is(Trait::view);
    return is_view && std::ranges::all_of(node->inputs, [&](Value* input) {
             return crossing_.contains(input) || !input->type.is_tensor();
           });
  }

  // --- the forward run: what is left, with more results

  void build_forward() {
    graph::Block& body = joint_.graph.body();
    body.parameters.resize(body.parameters.size() - joint_.seeds.size());
    body.results.insert(body.results.end(), saved_.begin(), saved_.end());
    std::ranges::for_each(joint_.ends, [&](Value* end) { join_again(body, end); });
    graph::Builder builder(joint_.graph);
    find_unbound_symbols();
    for (const auto& [name, symbol] : symbols_)
      body.results.push_back(op::size(builder, {}, {{"of", symbol}}));
  }

  /// The forward run goes on from the cut itself.
  static void join_again(graph::Block& body, Value* end) {
    Value* const value = end->definition->inputs.front();
    replace_uses(body, end, value);
    std::ranges::replace(body.results, end, value);
    std::erase(body.nodes, end->definition);
  }

  /// Finds the dimensions that the backward run uses and cannot read off its inputs.
  void find_unbound_symbols() {
    for (const auto* nodes : {&again_, &functions_, &own_})
      for (const Node* node : *nodes) note_symbols(*node);
    const auto drop_bound = [&](const Value* value) {
      std::erase_if(symbols_, [&](const auto& entry) {
        return std::ranges::find(value->type.shape, entry.first, graph::symbol_shown_by) !=
               value->type.shape.end();
      });
    };
    std::ranges::for_each(saved_, drop_bound);
    std::ranges::for_each(joint_.seeds, drop_bound);
  }

  void note_symbols(const Node& node) {
    for (const Value* output : node.outputs) note_symbols(output->type.shape);
    for (const auto& [name, attribute] : node.attributes) {
      if (const auto* dim = std::get_if<graph::Dim>(&attribute)) note_symbols({*dim});
      if (const auto* shape = std::get_if<graph::Shape>(&attribute)) note_symbols(*shape);
    }
    for (const auto& block : node.blocks)
      for (const Node* nested : block->nodes) note_symbols(*nested);
  }

  void note_symbols(const graph::Shape& shape) {
    for (const graph::Dim& dim : shape)
      for (const std::string& name : dim.symbols()) {
        const bool any_integer = dim.substitute([&](const std::string& other) {
          return other == name ? std::optional(graph::Dim::symbol(name, true)) : std::nullopt;
        }) == dim;
        symbols_.emplace(name, graph::Dim::symbol(name, any_integer));
      }
  }

  // --- the backward run: a graph of its own

  void build_backward() {
    for (const Value* value : saved_) add_input(*value);
    for (const auto& [name, symbol] : symbols_)
      backward_.new_parameter(backward_.body(), graph::Type::i64(), name);
    for (const Value* seed : joint_.seeds) add_input(*seed);
    graph::Builder builder(backward_);
    for (const Node* node : again_) copies_.copy(*node, builder);
    for (const Node* node : functions_) copies_.copy(*node, builder);
    for (const Node* node : own_) copies_.copy(*node, builder);
    for (const Value* gradient : joint_.gradients)
      backward_.body().results.push_back(copies_.copy_of(gradient));
  }

  void add_input(const Value& value) {
    copies_.set(&value, backward_.new_parameter(backward_.body(), value.type, value.name));
  }

  struct ById {
    bool operator()(const Value* a, const Value* b) const { return a->id < b->id; }
  };

  Joint joint_;
  graph::Graph backward_;
  std::vector<Node*> own_;        ///< of the backward run
  std::vector<Node*> functions_;  ///< that it runs
  std::unordered_set<const Node*> is_own_;
  std::unordered_set<const Value*> is_seed_;
  std::set<Value*, ById> crossing_;  ///< forward values that the backward run uses
  std::vector<Value*> saved_;
  std::vector<Node*> again_;  ///< of the forward run, made again in the backward run
  std::map<std::string, graph::Dim> symbols_;  ///< passed as numbers
  graph::Copier copies_{graph::Copier::Unknown::error};
};

}  // namespace

SplitGradient split_gradient(const graph::Graph& graph,
                             const std::vector<size_t>& differentiable_results,
                             const std::vector<size_t>& differentiable_inputs,
                             const std::vector<std::string>& differentiable_cells,
                             const std::vector<size_t>& cuts) {
  return Split(differentiate_whole(graph, differentiable_results, differentiable_inputs,
                                   differentiable_cells, cuts))
      .run();
}

std::vector<Value*> cut_gradients(graph::Graph& graph, const std::vector<size_t>& results) {
  std::vector<Value*> ends;
  for (const size_t result : results) {
    Value* const value = graph.results()[result];
    graph::Builder builder(graph);
    Value* const end = op::detach(builder, {value});
    replace_uses(graph.body(), value, end);
    auto& nodes = graph.body().nodes;
    const auto behind = std::next(std::ranges::find(nodes, value->definition));
    std::rotate(behind, std::prev(nodes.end()), nodes.end());
    ends.push_back(end);
  }
  return ends;
}

}  // namespace janus::passes
