// See list_pushes.h.
#include "passes/list_pushes.h"

#include <unordered_set>

#include "graph/functions.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Value;

namespace {

class PushSearch {
 public:
  explicit PushSearch(const Block* body) : body_(body) {}

  Pushes run(Value* list) {
    open(list);
    while (!open_.empty()) {
      Value* next = open_.back();
      open_.pop_back();
      if (next->definition != nullptr)
        through(*next->definition, next->index);
      else
        through_parameter(*next);
    }
    return std::move(found_);
  }

 private:
  void open(Value* list) {
    if (seen_.insert(list).second) open_.push_back(list);
  }

  void through(Node& node, size_t index) {
    if (node.op == &op::list_push) found_.nodes.push_back(&node);
    if (node.op == &op::list_push || node.op == &op::list_pop || node.op == &op::list_reverse ||
        node.op == &op::list_slice) {
      open(node.inputs[0]);
    } else if (node.op == &op::list_join) {
      for (Value* input : node.inputs) open(input);
    } else if (node.op == &op::if_) {
      for (const auto& side : node.blocks) open(side->results[index]);
    } else if (node.op == &op::while_) {
      open(node.inputs[index]);
      open(node.blocks[1]->results[index]);
    } else if (node.op == &op::call && graph::callee(node) != nullptr) {
      open(graph::callee(node)->blocks.front()->results[index]);
    } else if (node.op != &op::list_new) {
      found_.is_all = false;
    }
  }

  void through_parameter(const Value& parameter) {
    const Node* parent = parameter.owner->parent;
    if (parent != nullptr && parent->op == &op::while_) {
      open(parent->inputs[parameter.index]);
      open(parent->blocks[1]->results[parameter.index]);
    } else if (parent != nullptr && body_ != nullptr) {
      graph::for_each_node(*body_, [&](const Node& node) {
        if (node.op == &op::call && graph::callee(node) == parent)
          open(node.inputs[parameter.index]);
      });
    } else {
      found_.is_all = false;
    }
  }

  const Block* body_;
  Pushes found_;
  std::vector<Value*> open_;
  std::unordered_set<const Value*> seen_;
};

}  // namespace

Pushes pushes_of(Value* list, const Block* body) { return PushSearch(body).run(list); }

}  // namespace janus::passes
