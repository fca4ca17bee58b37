// See list_reach.h. A list is followed to all places that put elements into it, through loops,
// branches and functions.
#include "passes/reach/list_reach.h"

#include <unordered_set>
#include <utility>

#include "graph/functions.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Type;
using graph::Value;

namespace {

const Block* home_of(const Value& value) {
  return value.definition != nullptr ? value.definition->parent : value.owner;
}

bool is_visible_in(const Value& value, const Block* block) {
  for (; block != nullptr; block = block->parent == nullptr ? nullptr : block->parent->parent)
    if (home_of(value) == block) return true;
  return false;
}

const Block& body_around(const Block& block) {
  const Block* body = &block;
  while (body->parent != nullptr && body->parent->parent != nullptr) body = body->parent->parent;
  return *body;
}

/// The pushes of the elements that lists may have.
class Pushes {
 public:
  /// False: not all of them are known.
  bool add(const Value& list) {
    if (!seen_.insert(&list).second) return true;
    return list.definition == nullptr ? add_parameter(list) : add_result(list);
  }
  std::vector<Node*> take() { return std::move(found_); }

 private:
  bool add_result(const Value& list) {
    Node& node = *list.definition;
    if (node.op == &op::list_new) return true;
    if (node.op == &op::list_push) {
      found_.push_back(&node);
      return add(*node.inputs[0]);
    }
    if (node.op == &op::list_pop || node.op == &op::list_reverse || node.op == &op::list_slice)
      return add(*node.inputs[0]);
    if (node.op == &op::list_join) return add(*node.inputs[0]) && add(*node.inputs[1]);
    if (node.op == &op::if_)
      return add(*node.blocks[0]->results[list.index]) && add(*node.blocks[1]->results[list.index]);
    if (node.op == &op::while_) return add_carried(node, list.index);
    const Node* function = node.op == &op::call ? graph::callee(node) : nullptr;
    return function != nullptr && add(*function->blocks.front()->results[list.index]);
  }

  bool add_parameter(const Value& list) {
    const Node* node = list.owner == nullptr ? nullptr : list.owner->parent;
    if (node == nullptr) return false;
    if (node->op == &op::while_) return add_carried(*node, list.index);
    if (node->op != &op::function || node->parent == nullptr) return false;
    bool all = true;
    graph::for_each_node(body_around(*node->parent), [&](const Node& call) {
      if (call.op == &op::call && graph::callee(call) == node)
        all = all && add(*call.inputs[list.index]);
    });
    return all;
  }

  bool add_carried(const Node& loop, size_t index) {
    return add(*loop.inputs[index]) && add(*loop.blocks[1]->results[index]);
  }

  std::unordered_set<const Value*> seen_;
  std::vector<Node*> found_;
};

bool takes_from_tensors(const Node& node) {
  return !node.inputs.empty() && node.inputs[0]->type.kind == Type::Kind::list &&
         node.inputs[0]->type.elements.front().is_tensor();
}

}  // namespace

bool is_taken_in_turn(const Node& node) {
  if (node.op != &op::list_pop || !takes_from_tensors(node) ||
      node.attributes.get_or<bool>("partly", false))
    return false;
  const Value& list = *node.inputs[0];
  return list.owner != nullptr && list.owner->parent != nullptr &&
         list.owner->parent->op == &op::while_ &&
         list.owner->results[list.index] == node.outputs[0];
}

bool is_part_of_list(const Value& value) {
  const Node* node = value.definition;
  if (node == nullptr || !takes_from_tensors(*node)) return false;
  if (node->op == &op::list_pop)
    return value.index == 1 || node->attributes.get_or<bool>("partly", false);
  return node->op == &op::list_item || node->op == &op::list_slice;
}

std::optional<std::vector<Node*>> pushes_to(const Value& list) {
  Pushes pushes;
  if (!pushes.add(list)) return std::nullopt;
  return pushes.take();
}

std::vector<Value*> reached_by_each_element(const Value& list, const Search& search,
                                            const FunctionReach* functions) {
  const auto pushes = pushes_to(list);
  if (!pushes) return {};
  std::optional<Reached> common;
  for (const Node* push : *pushes) {
    Value* element = push->inputs[1];
    Reached reached =
        search.reached_from({&element, 1}, Paths::certain_but_for_lists, nullptr, functions);
    if (common)
      std::erase_if(*common, [&](Value* value) { return !reached.contains(value); });
    else
      common = std::move(reached);
  }
  std::vector<Value*> result;
  if (common)
    for (Value* value : *common)
      if (is_visible_in(*value, home_of(list))) result.push_back(value);
  return result;
}

}  // namespace janus::passes
