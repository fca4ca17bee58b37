// Processes that train together give their gradients to each other between backward and update, and
// keep equal parameters as long as each computes the same update of them. They begin to run it as a
// graph at different steps, so there the graph has to compute what eager does, sums as well.
// Gradients that the graph computes itself are those of its own process alone.
#include "frontend/autograd/shared_updates.h"

#include <algorithm>
#include <set>

#include "frontend/core/communication.h"
#include "ops/collectives.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Node;
using speculate::Assumption;
using speculate::CellBinding;
using speculate::Source;

namespace {

using Names = std::set<std::string, std::less<>>;

/// Cells of gradients: what stands in .grad, and that it stands there.
Names gradient_cells(const speculate::Generated& generated) {
  Names names;
  for (const CellBinding& cell : generated.cells)
    if (cell.kind == CellBinding::Kind::grad || cell.source->kind == Source::Kind::grad)
      names.insert(cell.name);
  return names;
}

/// Cells of tensors that require a gradient.
Names leaf_cells(const speculate::Generated& generated) {
  std::set<const Source*> leaves;
  for (const Assumption& assumption : generated.assumptions)
    if (assumption.kind == Assumption::Kind::tensor && assumption.tensor.requires_grad)
      leaves.insert(assumption.source);
  Names names;
  for (const CellBinding& cell : generated.cells)
    if (leaves.contains(cell.source)) names.insert(cell.name);
  return names;
}

/// Which values come from gradients that the run computes, and which from what it was given.
class Origins {
 public:
  explicit Origins(const graph::Graph& graph) {
    for (const graph::Value* input : graph.inputs()) given_.insert(input);
    visit(graph.body());
  }

  /// Whether the value comes from what the run was given, and not from its own gradients.
  bool is_of_others(const graph::Value* value) const {
    return given_.contains(value) && !own_.contains(value);
  }

 private:
  using Values = std::set<const graph::Value*>;

  void visit(const graph::Block& block) {
    for (const Node* node : block.nodes) visit(*node);
  }

  /// What a branch or loop gives comes from all that is used in it.
  void visit(const Node& node) {
    if (node.op == &op::state) given_.insert(node.output());
    bool is_own = node.op == &op::gradient, is_given = false;
    const auto look = [&](const Node& each) {
      is_own |= each.op == &op::gradient;
      is_given |= each.op == &op::state;
      for (const graph::Value* input : each.inputs) {
        is_own |= own_.contains(input);
        is_given |= given_.contains(input);
      }
    };
    look(node);
    for (const auto& block : node.blocks) graph::for_each_node(*block, look);
    const auto note = [&](const std::vector<graph::Value*>& values) {
      if (is_own) own_.insert(values.begin(), values.end());
      if (is_given) given_.insert(values.begin(), values.end());
    };
    note(node.outputs);
    for (const auto& block : node.blocks) note(block->parameters);
    for (const auto& block : node.blocks) visit(*block);
  }

  Values own_, given_;
};

bool updates_parameters(const speculate::Generated& generated) {
  const Names gradients = gradient_cells(generated), leaves = leaf_cells(generated);
  bool takes = false, updates = false, differentiates = false;
  const Origins origins(generated.graph);
  graph::for_each_node(generated.graph.body(), [&](const Node& node) {
    differentiates |= node.op == &op::gradient;
    const graph::AttributeValue* cell = node.attributes.find("cell");
    if (cell == nullptr) return;
    const auto& name = std::get<std::string>(*cell);
    takes |= gradients.contains(name) || (node.op != &op::state && leaves.contains(name));
    updates |= node.op != &op::state && (gradients.contains(name) || leaves.contains(name)) &&
               origins.is_of_others(node.inputs.front());
  });
  return updates || (takes && !differentiates && generated.differentiable_results.empty());
}

/// Whether there is anything but what is computed element by element, in the order of memory.
bool may_add_up(const graph::Graph& graph) {
  static const std::set<const graph::OpDef*> others = {&op::state, &op::commit, &op::rebind,
                                                       &op::detach};
  bool found = false;
  graph::for_each_node(graph.body(), [&](const Node& node) {
    const bool takes_tensor = std::ranges::any_of(
        node.inputs, [](const graph::Value* input) { return input->type.is_tensor(); });
    found |= takes_tensor && !node.op->is(graph::Trait::elementwise) && !others.contains(node.op);
  });
  return found;
}

/// Whether sums are computed of what other processes have as well.
bool adds_up_what_is_shared(const graph::Graph& graph) {
  static const std::set<const graph::OpDef*> others = {&op::commit, &op::rebind, &op::contiguous};
  std::set<const graph::Value*> shared;
  bool found = false;
  for (const Node* node : graph.body().nodes) {
    bool takes = node->op == &op::collective_wait;
    const auto look = [&](const Node& each) {
      const bool is_shared = std::ranges::any_of(
          each.inputs, [&](const graph::Value* input) { return shared.contains(input); });
      takes |= is_shared;
      found |= is_shared && !each.op->is(graph::Trait::elementwise) &&
               !each.op->is(graph::Trait::view) && !others.contains(each.op);
    };
    look(*node);
    for (const auto& block : node->blocks) graph::for_each_node(*block, look);
    if (takes) shared.insert(node->outputs.begin(), node->outputs.end());
  }
  return found;
}

/// Whether sums are computed of what processes have alike, parameters and constants, and go to what
/// outlives the run by another way than through a gradient or a collective.
class SumsOfParameters {
 public:
  explicit SumsOfParameters(const speculate::Generated& generated)
      : leaves_(leaf_cells(generated)) {
    visit(generated.graph.body());
  }

  bool are_kept() const { return are_kept_; }

 private:
  void visit(const graph::Block& block) {
    for (const Node* node : block.nodes) {
      for (const auto& inner : node->blocks) visit(*inner);
      visit(*node);
    }
  }

  void visit(const Node& node) {
    static const std::set<const graph::OpDef*> others = {&op::commit, &op::rebind, &op::contiguous,
                                                         &op::detach};
    const graph::AttributeValue* cell = node.attributes.find("cell");
    if (node.op == &op::state) {
      if (leaves_.contains(std::get<std::string>(*cell))) alike_.insert(node.output());
      return;
    }
    if (node.op == &op::gradient || node.op->is(graph::Trait::communicates)) return;
    const bool is_alike = std::ranges::all_of(
        node.inputs, [&](const graph::Value* input) { return alike_.contains(input); });
    const bool takes_tensor = std::ranges::any_of(
        node.inputs, [](const graph::Value* input) { return input->type.is_tensor(); });
    bool is_sum = is_alike && takes_tensor && node.blocks.empty() &&
                  !node.op->is(graph::Trait::elementwise) && !node.op->is(graph::Trait::view) &&
                  !others.contains(node.op);
    const auto look = [&](const Node& each) {
      is_sum |= std::ranges::any_of(
          each.inputs, [&](const graph::Value* input) { return sums_.contains(input); });
    };
    look(node);
    for (const auto& block : node.blocks) graph::for_each_node(*block, look);
    are_kept_ |= is_sum && cell != nullptr;
    if (is_alike && node.blocks.empty()) alike_.insert(node.outputs.begin(), node.outputs.end());
    if (is_sum) sums_.insert(node.outputs.begin(), node.outputs.end());
  }

  const Names leaves_;
  std::set<const graph::Value*> alike_, sums_;
  bool are_kept_ = false;
};

}  // namespace

bool is_shared_update(Interpreter& interpreter) {
  const speculate::Generated& generated = interpreter.output();
  if (adds_up_what_is_shared(generated.graph)) return true;
  if (SumsOfParameters(generated).are_kept() && is_in_process_group(interpreter)) return true;
  return updates_parameters(generated) && may_add_up(generated.graph) &&
         is_in_process_group(interpreter);
}

}  // namespace janus::frontend
