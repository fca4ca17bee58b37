#include "frontend/autograd/consumed_tape.h"

#include <algorithm>

#include "frontend/autograd/gradients.h"
#include "frontend/core/operations.h"
#include "frontend/values/restart.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/reach/gradient_edges.h"
#include "passes/reach/reachability.h"
#include "passes/structure/captures.h"

namespace janus::frontend {

using graph::Block;
using graph::Node;
using passes::Paths;

namespace {

const Block* home_of(const graph::Value& value) {
  return value.definition != nullptr ? value.definition->parent : value.owner;
}

std::span<graph::Value* const> outputs_of(const Node& gradient) {
  return std::span(gradient.inputs)
      .first(static_cast<size_t>(gradient.attributes.get<int64_t>("outputs")));
}

}  // namespace

ConsumedTape::ConsumedTape(Interpreter& interpreter, const std::vector<Node*>& pushes)
    : interpreter_(interpreter) {
  const Block& body = interpreter.output().graph.body();
  for (const Node* push : pushes) begins_[push->parent].push_back(push->inputs[1]);
  const auto is_consumed = [&](const graph::Value* value) {
    return interpreter.history.consumed.contains(value->definition);
  };
  graph::for_each_node(body, [&](const Node& node) {
    if (node.op == &op::function) {
      std::set<size_t>& results = results_[&node];
      for (size_t i = 0; i < node.blocks.front()->results.size(); ++i) results.insert(i);
    }
    if (node.op != &op::gradient) return;
    const auto outputs = outputs_of(node);
    if (!std::ranges::all_of(outputs, is_consumed)) return;
    gradients_.push_back(&node);
    if (interpreter.history.partial.contains(&node)) return add_way(node);
    auto& begins = begins_[node.parent];
    begins.insert(begins.end(), outputs.begin(), outputs.end());
  });
  find();
}

void ConsumedTape::add_way(const Node& gradient) {
  if (gradient.parent != &interpreter_.output().graph.body()) return;
  const auto outputs = outputs_of(gradient);
  const Reached reached = passes::reached_from(outputs, Paths::certain, gradient.parent);
  std::map<const graph::Value*, std::vector<graph::Value*>> users;
  for (graph::Value* value : reached)
    if (value->definition != nullptr && value->definition->blocks.empty() &&
        passes::passes_gradient(*value->definition))
      for (const graph::Value* operand : passes::operands_reached(*value, Paths::certain))
        users[operand].push_back(value);
  const auto count = static_cast<size_t>(gradient.attributes.get<int64_t>("targets"));
  const auto targets = std::span(gradient.inputs).last(count);
  std::vector<const graph::Value*> leading(targets.begin(), targets.end());
  while (!leading.empty()) {
    const graph::Value* operand = leading.back();
    leading.pop_back();
    for (graph::Value* value : users[operand])
      if (on_the_way_.insert(value).second) leading.push_back(value);
  }
}

/// Begins with all results of functions as reached, and drops those that some call does not reach.
void ConsumedTape::find() {
  while (true) {
    reached_.clear();
    results_met_ = results_;
    for (const auto& [function, results] : results_) find_in(*function->blocks.front());
    find_in(interpreter_.output().graph.body());
    if (results_met_ == results_) return;
    results_ = results_met_;
  }
}

void ConsumedTape::find_in(const Block& block) {
  std::vector<graph::Value*> begins;
  if (block.parent != nullptr && block.parent->op == &op::function)
    for (const size_t i : results_.at(block.parent)) begins.push_back(block.results[i]);
  reached_[&block] = from(block, std::move(begins));
  const Reached reached = reached_[&block];
  for (const Node* node : block.nodes) enter(*node, reached);
}

void ConsumedTape::enter(const Node& node, const Reached& reached) {
  if (node.op == &op::function) return;
  std::set<size_t> results;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (reached.contains(node.outputs[i])) results.insert(i);
  if (const Node* function = node.op == &op::call ? graph::callee(node) : nullptr) {
    std::erase_if(results_met_[function], [&](size_t i) { return !results.contains(i); });
    return;
  }
  for (const auto& block : node.blocks) {
    std::vector<graph::Value*> begins;
    if (node.op == &op::while_) {
      if (block == node.blocks.front()) continue;
      reached_[block.get()] = carried_by(node, results);
    } else {
      if (node.op == &op::if_)
        for (const size_t i : results) begins.push_back(block->results[i]);
      reached_[block.get()] = from(*block, std::move(begins));
    }
    const Reached inside = reached_[block.get()];
    for (const Node* nested : block->nodes) enter(*nested, inside);
  }
}

/// The carried values that all iterations hand a gradient on to. An iteration gets it from the next
/// iteration, or from what follows the loop.
ConsumedTape::Reached ConsumedTape::carried_by(const Node& loop, std::set<size_t> carried) const {
  const Block& body = *loop.blocks[1];
  while (true) {
    std::vector<graph::Value*> ends;
    for (const size_t k : carried) ends.push_back(body.results[k]);
    Reached reached = from(body, std::move(ends));
    if (std::erase_if(carried, [&](size_t k) { return !reached.contains(body.parameters[k]); }) ==
        0)
      return reached;
  }
}

ConsumedTape::Reached ConsumedTape::from(const Block& block,
                                         std::vector<graph::Value*> values) const {
  if (const auto begins = begins_.find(&block); begins != begins_.end())
    values.insert(values.end(), begins->second.begin(), begins->second.end());
  return passes::reached_from(values, Paths::certain, &block);
}

bool ConsumedTape::contains(graph::Value* value) const {
  const auto reached = reached_.find(home_of(*value));
  if (reached == reached_.end()) return false;
  // The value that a cell shows is computed from its state.
  const Node* node = value->definition;
  const bool is_state = node != nullptr && node->op == &op::lstm_cell && value->index == 1;
  return reached->second.contains(value) ||
         (is_state && reached->second.contains(node->outputs[0]));
}

/// Whether eager's autograd tracks the value. A value that is read of a view does not say so
/// itself.
bool ConsumedTape::is_tracked(graph::Value* value) {
  if (!graph::carries_gradient(value->type)) return false;
  if (value->type.kind == graph::Type::Kind::list) return true;
  if (interpreter_.differentiable.contains(value)) return true;
  const Node* node = value->definition;
  if (node == nullptr || !passes::passes_gradient(*node)) return false;
  const auto [known, is_new] = tracked_.try_emplace(value, false);
  if (!is_new) return known->second;
  const bool found = std::ranges::any_of(
      passes::operands(*node), [&](graph::Value* operand) { return is_tracked(operand); });
  return tracked_[value] = found;
}

bool ConsumedTape::raises(graph::Value* value) {
  const bool found = raises(value, contains(value));
  // An answer may rest on an assumption that turned out to be false.
  std::erase_if(raises_, [](const auto& known) { return known.second; });
  return found;
}

/// `reached`: a backward() has reached the value in the run of its block that counts. The answer is
/// taken for true while it is being found, since all runs end.
bool ConsumedTape::raises(graph::Value* value, bool reached) {
  reached = reached || contains(value);
  const auto [known, is_new] = raises_.try_emplace({value, reached}, true);
  if (!is_new) return known->second;
  const bool found = find_raises(value, reached);
  return raises_[{value, reached}] = found;
}

bool ConsumedTape::find_raises(graph::Value* value, bool reached) {
  const Node* node = value->definition;
  const size_t index = value->index;
  if (node == nullptr) return parameter_raises(*value);
  if (node->op == &op::list_new) return true;
  if (!passes::passes_gradient(*node)) return false;
  if (node->op == &op::if_)
    return std::ranges::all_of(
        node->blocks, [&](const auto& side) { return raises(side->results[index], reached); });
  if (node->op == &op::while_)
    return raises(node->blocks[1]->results[index], reached) &&
           (node->attributes.get_or<int64_t>("minimum", 0) > 0 ||
            raises(node->inputs[index], false));
  if (const Node* function = node->op == &op::call ? graph::callee(*node) : nullptr)
    return raises(function->blocks.front()->results[index], reached);
  if ((reached || on_the_way_.contains(value)) &&
      graph::saves_of(*node->op) != graph::Saves::nothing)
    return true;
  return operands_raise(*node, reached);
}

/// A parameter raises only if all that iterations or activations are given for it raises.
bool ConsumedTape::parameter_raises(const graph::Value& parameter) {
  const Node* node = parameter.owner == nullptr ? nullptr : parameter.owner->parent;
  const size_t index = parameter.index;
  if (node == nullptr) return false;
  if (node->op == &op::while_)
    return raises(node->inputs[index], false) && raises(node->blocks[1]->results[index], false);
  if (node->op != &op::function) return false;
  bool all = true;
  graph::for_each_node(interpreter_.output().graph.body(), [&](const Node& call) {
    if (call.op == &op::call && graph::callee(call) == node)
      all = all && raises(call.inputs[index], false);
  });
  return all;
}

bool ConsumedTape::operands_raise(const Node& node, bool reached) {
  size_t raising = 0, others = 0;
  for (graph::Value* operand : node.inputs)
    if (is_tracked(operand)) ++(raises(operand, reached) ? raising : others);
  const bool is_list = node.output()->type.kind == graph::Type::Kind::list;
  return raising > 0 && (others == 0 || (reached && !is_list));
}

void ConsumedTape::check_raises(graph::Value* value) {
  if (raises(value)) return;
  for (const Node* gradient : gradients_) {
    for (const Block* block = gradient->parent; block->parent != nullptr;
         block = block->parent->parent)
      if (const auto test = interpreter_.scope_nodes.find(block->parent);
          test != interpreter_.scope_nodes.end())
        throw CannotMerge{test->second, "whether backward() runs depends on it"};
    const auto outputs = outputs_of(*gradient);
    check_certain(interpreter_, {outputs.begin(), outputs.end()}, {value});
  }
  interpreter_.refuse(ReasonCode::autograd, "a result whose graph backward() may not have freed");
}

}  // namespace janus::frontend
