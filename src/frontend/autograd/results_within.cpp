#include "frontend/autograd/results_within.h"

#include <set>

#include "frontend/values/restart.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

using graph::Block;
using graph::Node;
using passes::Paths;
using passes::Reached;

namespace {

/// The blocks that give the results of the node.
std::vector<const Block*> blocks_of(const Node& node) {
  if (node.op == &op::if_) return {node.blocks[0].get(), node.blocks[1].get()};
  if (node.op == &op::while_) return {node.blocks[1].get()};
  const Node* function = node.op == &op::call ? graph::callee(node) : nullptr;
  return function == nullptr ? std::vector<const Block*>()
                             : std::vector<const Block*>{function->blocks.front().get()};
}

class Search {
 public:
  /// The outermost node in which a gradient that comes to `reached` comes to the value as well.
  const Node* around(const graph::Value& value, const Reached& reached) {
    const Node* node = value.definition;
    if (node == nullptr || !seen_.insert(&value).second) return nullptr;
    for (const Block* block : blocks_of(*node)) {
      std::vector<graph::Value*> others;
      for (const graph::Value* output : node->outputs)
        if (output != &value && reached.contains(node->outputs[output->index]))
          others.push_back(block->results[output->index]);
      graph::Value* const inside = block->results[value.index];
      if (others.empty() || inside->definition == nullptr || inside->definition->parent != block)
        continue;
      const Reached within = passes::reached_from(others, Paths::any, block);
      if (within.contains(inside) || around(*inside, within) != nullptr) return node;
    }
    return nullptr;
  }

 private:
  std::set<const graph::Value*> seen_;
};

}  // namespace

void check_not_within(Interpreter& interpreter, const std::vector<graph::Value*>& results) {
  for (graph::Value* const from : results) {
    const Reached reached = passes::reached_from({&from, 1}, Paths::any);
    for (const graph::Value* value : results) {
      const Node* node = value == from ? nullptr : Search().around(*value, reached);
      if (node == nullptr) continue;
      constexpr const char* kWhy = "one of its results lies on the way of another's gradient";
      const auto test = interpreter.scope_nodes.find(node);
      if (test != interpreter.scope_nodes.end()) throw CannotMerge{test->second, kWhy};
      interpreter.refuse(ReasonCode::autograd, cat("a recursion: ", kWhy));
    }
  }
}

}  // namespace janus::frontend
