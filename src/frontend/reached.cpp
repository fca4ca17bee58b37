// A gradient comes to a value by each way from the outputs back to it. A way through an `if` is
// there if its side is taken: what the sides say becomes one more result of that node.
#include "frontend/reached.h"

#include "ops/list.h"
#include "passes/reachability.h"

namespace janus::frontend {

using graph::Node;

ReachedFlags::Reached ReachedFlags::of(const std::vector<graph::Value*>& targets) {
  using passes::Paths;
  targets_ = {targets.begin(), targets.end()};
  test_.reset();
  for (const bool certain : passes::reachable(outputs_, targets, Paths::certain))
    if (certain) return {};
  known_.clear();
  Flag flag;
  for (graph::Value* output : outputs_)
    flag = either(flag, of(output), interpreter_.builder().block());
  if (flag.value == nullptr && flag.known) return {};
  if (flag.value == nullptr || !test_)
    interpreter_.refuse(ReasonCode::autograd,
                        "whether something has a gradient depends on a branch");
  return {.certain = false, .flag = flag.value, .test = *test_};
}

ReachedFlags::Flag ReachedFlags::of(graph::Value* value) {
  if (targets_.contains(value)) return {.known = true};
  auto place = known_.find(value);
  if (place != known_.end()) return place->second;
  Flag flag = find(value);
  known_[value] = flag;
  return flag;
}

ReachedFlags::Flag ReachedFlags::find(graph::Value* value) {
  Node* node = value->definition;
  if (node == nullptr || !passes::carries_gradient(value->type) || !passes::passes_gradient(*node))
    return {};
  if (node->op == &op::if_) return through_branch(*value);
  if (!node->blocks.empty() || node->op == &op::call || node->op == &op::gradient)
    return through_uncertain(*value);
  auto [operands, is_new] = operands_.try_emplace(value);
  if (is_new) operands->second = passes::operands_reached(*value, passes::Paths::any);
  Flag flag;
  for (graph::Value* operand : operands->second) flag = either(flag, of(operand), *node->parent);
  return flag;
}

ReachedFlags::Flag ReachedFlags::through_branch(graph::Value& output) {
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

/// Through a loop, a function or an earlier gradient: only what is certain.
ReachedFlags::Flag ReachedFlags::through_uncertain(graph::Value& output) {
  using passes::Paths;
  const Node& node = *output.definition;
  Flag flag;
  std::vector<graph::Value*> certain;
  if (node.op != &op::gradient) certain = passes::operands_reached(output, Paths::certain);
  for (graph::Value* operand : certain) flag = either(flag, of(operand), *node.parent);
  for (graph::Value* operand : passes::operands_reached(output, Paths::any)) {
    if (std::find(certain.begin(), certain.end(), operand) != certain.end()) continue;
    if (of(operand) == Flag{}) continue;
    auto test = interpreter_.scope_nodes.find(&node);
    if (test != interpreter_.scope_nodes.end())
      throw CannotMerge{test->second, "whether something has a gradient depends on it"};
    interpreter_.refuse(ReasonCode::autograd, "whether something has a gradient depends on a loop");
  }
  return flag;
}

/// Computed at the end of the block that both are known in.
ReachedFlags::Flag ReachedFlags::either(Flag a, Flag b, graph::Block& block) {
  if (a == b || (b.value == nullptr && !b.known)) return a;
  if (a.value == nullptr && !a.known) return b;
  if ((a.value == nullptr && a.known) || (b.value == nullptr && b.known)) return {.known = true};
  graph::Value*& result = made_[{&block, a.value, b.value, false, false}];
  if (result == nullptr) {
    graph::Builder builder(interpreter_.builder().graph(), block);
    result = builder.append(op::scalar_or, {a.value, b.value})->output();
  }
  return {.value = result};
}

graph::Value* ReachedFlags::in_block(Flag flag, graph::Block& block) {
  if (flag.value != nullptr) return flag.value;
  graph::Builder builder(interpreter_.builder().graph(), block);
  return builder.constant(flag.known);
}

}  // namespace janus::frontend
