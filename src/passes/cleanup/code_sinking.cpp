// See code_sinking.h.
#include "passes/cleanup/code_sinking.h"

#include <algorithm>
#include <unordered_map>

#include "graph/op.h"
#include "ops/list.h"
#include "passes/analysis/may_raise.h"
#include "passes/structure/captures.h"
#include "passes/structure/renew.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::Value;

bool can_be_moved(const Node& node) {
  return node.op->is(Trait::pure) && !node.op->is(Trait::random) && !may_raise(node) &&
         node.blocks.empty() && std::ranges::all_of(node.outputs, [](const Value* output) {
           return output->type.is_tensor();
         });
}

/// Whether something in the block uses a result of the node.
bool uses(const Block& block, const Node& node) {
  const auto is_result = [&](const Value* value) { return value->definition == &node; };
  return std::ranges::any_of(block.results, is_result) ||
         std::ranges::any_of(block.nodes, [&](const Node* inner) {
           return std::ranges::any_of(operands(*inner), is_result);
         });
}

class Sinker {
 public:
  Sinker(Graph& graph, Block& block) : graph_(graph), block_(block) {}

  void run() {
    for (const Value* result : block_.results) use(result, nullptr);
    for (size_t i = block_.nodes.size(); i-- > 0;) {
      Node& node = *block_.nodes[i];
      Node* const user = only_user(node);
      const bool moves = user != nullptr && user->op == &op::if_ && can_be_moved(node) &&
                         user->inputs[0]->definition != &node;
      if (moves) {
        block_.nodes.erase(block_.nodes.begin() + static_cast<ptrdiff_t>(i));
        move(node, *user);
      }
      for (const Value* operand : operands(node)) use(operand, moves ? user : &node);
    }
    for (const Node* node : block_.nodes)
      if (node->op == &op::if_)
        for (const auto& side : node->blocks) sink_code(graph_, *side);
  }

 private:
  void use(const Value* value, Node* user) {
    const auto [found, is_new] = user_.try_emplace(value, user);
    if (found->second != user) found->second = nullptr;
  }

  /// Null: there are several, or none.
  Node* only_user(const Node& node) const {
    Node* only = nullptr;
    for (const Value* output : node.outputs) {
      const auto found = user_.find(output);
      if (found == user_.end()) continue;
      if (found->second == nullptr || (only != nullptr && only != found->second)) return nullptr;
      only = found->second;
    }
    return only;
  }

  /// To the beginning of each side that uses it.
  void move(Node& node, const Node& user) {
    Node* next = &node;
    for (const auto& side : user.blocks) {
      if (!uses(*side, node)) continue;
      if (next == nullptr) {
        next = copied(node);
        Renewed now;
        for (size_t i = 0; i < node.outputs.size(); ++i) now[node.outputs[i]] = next->outputs[i];
        renew(*side, now);
      }
      next->parent = side.get();
      side->nodes.insert(side->nodes.begin(), next);
      next = nullptr;
    }
  }

  Node* copied(const Node& node) {
    Node* copy = graph_.new_node(*node.op);
    copy->inputs = node.inputs;
    copy->attributes = node.attributes;
    copy->span = node.span;
    for (const Value* output : node.outputs) graph_.new_output(*copy, output->type, output->name);
    return copy;
  }

  Graph& graph_;
  Block& block_;
  std::unordered_map<const Value*, Node*> user_;  ///< null: several
};

}  // namespace

void sink_code(Graph& graph, Block& block) { Sinker(graph, block).run(); }

}  // namespace janus::passes
