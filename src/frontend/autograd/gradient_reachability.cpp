// A gradient comes to a value by each way from the outputs back to it. A way through an `if` exists
// if its side is taken: the flags of the two sides become one more result of that node. A loop
// carries, beside a value, the flag whether the value is reached.
#include "frontend/autograd/gradient_reachability.h"

#include <algorithm>

#include "frontend/core/operations.h"
#include "frontend/values/restart.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/gradient/reachable.h"
#include "passes/reach/gradient_edges.h"
#include "passes/reach/list_reach.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

using graph::Node;

namespace {

/// Moves the last node of the block to right behind what it uses, as blocks in between may use it.
void move_up(graph::Block& block) {
  std::vector<Node*>& nodes = block.nodes;
  const auto uses = [used = nodes.back()](const Node* node) {
    return std::ranges::any_of(
        used->inputs, [&](const graph::Value* input) { return input->definition == node; });
  };
  const auto last = std::find_if(nodes.rbegin() + 1, nodes.rend(), uses);
  std::rotate(last.base(), nodes.end() - 1, nodes.end());
}

bool is_in_function(const Node& node) {
  const Node* around = node.parent->parent;
  return around != nullptr && (around->op == &op::function || is_in_function(*around));
}

}  // namespace

GradientReachability::Reached GradientReachability::of(const std::vector<graph::Value*>& targets) {
  using passes::Paths;
  for (const bool certain : passes::reachable(outputs_, targets, Paths::certain))
    if (certain) return {};
  targets_ = {targets.begin(), targets.end()};
  const auto [place, is_new] = reached_.try_emplace(places_of_targets());
  if (is_new) place->second = through_all();
  return place->second;
}

GradientReachability::Places GradientReachability::places_of_targets() {
  Places places;
  const auto add = [&](const void* of, const std::vector<graph::Value*>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      if (targets_.contains(values[i])) places.emplace(of, i);
  };
  add(this, outputs_);
  graph::for_each_node(interpreter_.builder().graph().body(), [&](Node& node) {
    const auto is_target = [&](graph::Value* value) { return targets_.contains(value); };
    for (const auto& block : node.blocks) add(block.get(), block->results);
    if (!node.blocks.empty() || node.op == &op::call) return add(&node, node.inputs);
    if (std::ranges::none_of(node.inputs, is_target)) return;
    for (graph::Value* output : node.outputs)
      if (std::ranges::any_of(operands_of(output), is_target)) places.emplace(output, 0);
  });
  return places;
}

GradientReachability::Reached GradientReachability::through_all() {
  test_.reset();
  carried_.clear();
  known_.clear();
  Flag flag;
  for (graph::Value* output : outputs_)
    flag = either(flag, of(output), interpreter_.builder().block());
  if (flag.value == nullptr && flag.known) return {};
  if (flag.value == nullptr || !test_)
    interpreter_.refuse(ReasonCode::autograd, "a branch decides whether a tensor gets a gradient");
  return {.certain = false, .flag = flag.value, .test = *test_};
}

GradientReachability::Flag GradientReachability::of(graph::Value* value) {
  if (targets_.contains(value)) return {.known = true};
  auto place = known_.find(value);
  if (place != known_.end()) return place->second;
  Flag flag = find(value);
  known_[value] = flag;
  return flag;
}

namespace {

/// Whether an iteration takes elements of a list. Iterations do not tell which elements.
bool reads_part_of_list(const Node& loop) {
  bool found = false;
  graph::for_each_node(*loop.blocks[1], [&](const Node& node) {
    found |= std::ranges::any_of(
        node.outputs, [](const auto* output) { return passes::is_part_of_list(*output); });
  });
  return found;
}

}  // namespace

GradientReachability::Flag GradientReachability::find(graph::Value* value) {
  Node* node = value->definition;
  if (!passes::carries_gradient(value->type)) return {};
  if (node == nullptr) return in_iteration(*value);
  if (!passes::passes_gradient(*node)) return {};
  if (node->op == &op::if_) return through_branch(*value);
  if (node->op == &op::while_ && !is_in_function(*node) && !reads_part_of_list(*node))
    return through_loop(*value);
  if (node->op == &op::call) return through_call(*value);
  if (!node->blocks.empty() || node->op == &op::gradient || passes::is_part_of_list(*value))
    return through_uncertain(*value);
  Flag flag;
  for (graph::Value* operand : operands_of(value)) flag = either(flag, of(operand), *node->parent);
  return flag;
}

const std::vector<graph::Value*>& GradientReachability::operands_of(graph::Value* value) {
  auto [operands, is_new] = operands_.try_emplace(value);
  if (is_new) operands->second = passes::operands_reached(*value, passes::Paths::any);
  return operands->second;
}

GradientReachability::Flag GradientReachability::through_branch(graph::Value& output) {
  Node& node = *output.definition;
  const size_t index = output.index;
  const Flag first = of(node.blocks[0]->results[index]);
  const Flag second = of(node.blocks[1]->results[index]);
  if (first == second) return first;
  if (auto test = interpreter_.scope_nodes.find(&node); test != interpreter_.scope_nodes.end())
    test_ = test->second;
  if (first == Flag{.known = true} && second == Flag{}) return {.value = node.inputs[0]};
  graph::Value*& result = made_[{&node, first.value, second.value, first.known, second.known}];
  if (result == nullptr) {
    result = interpreter_.builder().graph().new_output(node, graph::Type::boolean(), "reached");
    node.blocks[0]->results.push_back(in_block(first, *node.blocks[0]));
    node.blocks[1]->results.push_back(in_block(second, *node.blocks[1]));
  }
  return {.value = result};
}

GradientReachability::Flag GradientReachability::through_loop(graph::Value& output) {
  using passes::Paths;
  Node& loop = *output.definition;
  const std::vector<graph::Value*> certain = passes::operands_reached(output, Paths::certain);
  Flag flag;
  for (graph::Value* operand : certain) flag = either(flag, of(operand), *loop.parent);
  if (flag == Flag{.known = true}) return flag;
  for (graph::Value* operand : passes::operands_reached(output, Paths::any)) {
    if (std::ranges::count(certain, operand) > 0 || of(operand) == Flag{}) continue;
    if (auto test = interpreter_.scope_nodes.find(&loop); test != interpreter_.scope_nodes.end())
      test_ = test->second;
    return {.value = loop.outputs[carried(loop, output.index)]};
  }
  return flag;
}

/// The flag of a value that a loop carries, at the beginning of an iteration.
GradientReachability::Flag GradientReachability::in_iteration(graph::Value& parameter) {
  graph::Block* body = parameter.owner;
  Node* loop = body == nullptr ? nullptr : body->parent;
  const bool is_being_made = body != nullptr && loop == nullptr &&
                             body != &interpreter_.builder().graph().body() &&
                             interpreter_.differentiable.contains(&parameter);
  if (is_being_made)
    interpreter_.refuse(ReasonCode::autograd, "whether something has a gradient depends on a loop");
  if (loop == nullptr || loop->op != &op::while_ || body != loop->blocks[1].get()) return {};
  return {.value = body->parameters[carried(*loop, parameter.index)]};
}

/// The number of the carried value that is the flag of carried value `index`.
size_t GradientReachability::carried(Node& loop, size_t index) {
  const auto [known, is_new] = carried_.try_emplace({&loop, index}, loop.inputs.size());
  const size_t place = known->second;
  if (!is_new) return place;
  graph::Graph& graph = interpreter_.builder().graph();
  graph::Block& body = *loop.blocks[1];
  for (const auto& block : loop.blocks)
    graph.new_parameter(*block, graph::Type::boolean(), "reached");
  graph.new_output(loop, graph::Type::boolean(), "reached");
  body.results.push_back(body.parameters[place]);  // until it is known
  const Flag before = of(loop.inputs[index]);
  loop.inputs.push_back(in_block(before, *loop.parent));
  if (before.value == nullptr) move_up(*loop.parent);
  body.results[place] = in_block(of(body.results[index]), body);
  return place;
}

/// A function tells by one more result whether a value that it uses from outside is reached. Its
/// arguments are treated as what a loop carries.
GradientReachability::Flag GradientReachability::through_call(graph::Value& output) {
  using passes::Paths;
  Node& call = *output.definition;
  Node* function = graph::callee(call);
  bool is_reached = false;
  for (graph::Value* operand : passes::operands_reached(output, Paths::any)) {
    const Flag flag = of(operand);
    if (flag == Flag{}) continue;
    const bool is_given = std::ranges::count(call.inputs, operand) > 0;
    if (is_given || flag.value != nullptr || function == nullptr) return through_uncertain(output);
    is_reached = true;
  }
  if (!is_reached) return {};
  for (graph::Value* operand : passes::operands_reached(output, Paths::certain))
    if (of(operand) == Flag{.known = true}) return {.known = true};
  return {.value = call.outputs[result_of(*function, output.index)]};
}

/// Which result of the function tells whether a gradient of result `index` comes to a target.
size_t GradientReachability::result_of(Node& function, size_t index) {
  const FunctionResult result{&function, index};
  if (const auto open = open_.find(result); open != open_.end()) return open->second;
  graph::Block& block = *function.blocks.front();
  const std::string key = structure_of(function, index);
  if (const auto found = found_.find(key); found != found_.end()) return found->second;
  graph::Graph& graph = interpreter_.builder().graph();
  const size_t place = block.results.size();
  block.results.push_back(in_block({}, block));  // until it is known
  graph::for_each_node(graph.body(), [&](Node& node) {
    if (node.op == &op::call && graph::callee(node) == &function)
      graph.new_output(node, graph::Type::boolean(), "reached");
  });
  open_[result] = place;
  const Flag flag = of(block.results[index]);
  open_.erase(result);
  block.results[place] = in_block(flag, block);
  return found_[key] = place;
}

/// The text is complete: it leaves out nothing because another text describes it already.
std::string GradientReachability::structure_of(const Node& function, size_t index) {
  auto structures = std::exchange(structures_, {});
  auto described = std::exchange(described_, {{&function, index}});
  std::string text = cat(graph::function_name(function), ' ', index, ' ',
                         structure(function.blocks.front()->results[index]));
  structures_ = std::move(structures);
  described_ = std::move(described);
  return text;
}

/// A text that is the same for values from which gradients come to targets under the same
/// conditions.
std::string GradientReachability::structure(graph::Value* value) {
  if (auto known = structures_.find(value); known != structures_.end()) return known->second;
  std::string text = describe(value);
  return structures_[value] = std::move(text);
}

std::string GradientReachability::describe(graph::Value* value) {
  if (targets_.contains(value)) return "1";
  Node* node = value->definition;
  if (node == nullptr || !passes::carries_gradient(value->type) || !passes::passes_gradient(*node))
    return {};
  if (node->op == &op::if_) {
    const std::string first = structure(node->blocks[0]->results[value->index]);
    const std::string second = structure(node->blocks[1]->results[value->index]);
    return first.empty() && second.empty() ? first
                                           : cat('%', value->id, '(', first, ';', second, ')');
  }
  Node* function = node->op == &op::call ? graph::callee(*node) : nullptr;
  if (function != nullptr) {
    const FunctionResult result{function, value->index};
    const std::string name = cat('@', graph::function_name(*function), '.', value->index);
    if (!described_.insert(result).second) return name;
    const std::string inside = structure(function->blocks.front()->results[value->index]);
    described_.erase(result);
    return cat(name, '{', inside, '}');
  }
  if (!node->blocks.empty() || node->op == &op::gradient || passes::is_part_of_list(*value)) {
    const Flag flag = of(value);
    if (flag.value != nullptr) return cat('%', flag.value->id);
    return flag.known ? "1" : "";
  }
  std::set<std::string> parts;
  for (graph::Value* operand : operands_of(value)) parts.insert(structure(operand));
  if (parts.contains("1")) return "1";
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

/// Through arguments of functions, earlier gradients and elements of lists. Only what is certain
/// counts.
GradientReachability::Flag GradientReachability::through_uncertain(graph::Value& output) {
  using passes::Paths;
  const Node& node = *output.definition;
  Flag flag;
  std::vector<graph::Value*> certain;
  if (node.op != &op::gradient) certain = passes::operands_reached(output, Paths::certain);
  for (graph::Value* operand : certain) flag = either(flag, of(operand), *node.parent);
  if (flag.known) return flag;
  for (graph::Value* operand : passes::operands_reached(output, Paths::any)) {
    if (std::find(certain.begin(), certain.end(), operand) != certain.end()) continue;
    if (of(operand) == Flag{}) continue;
    auto test = interpreter_.scope_nodes.find(&node);
    if (test != interpreter_.scope_nodes.end())
      throw CannotMerge{test->second, "it decides whether a tensor gets a gradient",
                        /*in_first_iteration=*/node.op == &op::while_};
    interpreter_.refuse(ReasonCode::autograd,
                        passes::is_part_of_list(output)
                            ? "whether something has a gradient depends on the element of a list"
                            : "whether something has a gradient depends on a loop");
  }
  return flag;
}

/// Computed in the block that both are known in.
GradientReachability::Flag GradientReachability::either(Flag a, Flag b, graph::Block& block) {
  if (a == b || (b.value == nullptr && !b.known)) return a;
  if (a.value == nullptr && !a.known) return b;
  if ((a.value == nullptr && a.known) || (b.value == nullptr && b.known)) return {.known = true};
  graph::Value*& result = made_[{&block, a.value, b.value, false, false}];
  if (result == nullptr) {
    graph::Builder builder(interpreter_.builder().graph(), block);
    result = builder.append(op::scalar_or, {a.value, b.value})->output();
    move_up(block);
  }
  return {.value = result};
}

graph::Value* GradientReachability::in_block(Flag flag, graph::Block& block) {
  if (flag.value != nullptr) return flag.value;
  graph::Builder builder(interpreter_.builder().graph(), block);
  return builder.constant(flag.known);
}

}  // namespace janus::frontend
