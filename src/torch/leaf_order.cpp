// See leaf_order.h.
#include "torch/leaf_order.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>

#include "graph/op.h"
#include "ops/list.h"
#include "passes/reach/gradient_edges.h"
#include "passes/structure/captures.h"

namespace janus::torch {

using graph::Node;
using graph::Value;

namespace {

/// What autograd goes on to from a node, in its order: a linear layer is a sum with a product, of
/// which the bias comes first.
std::vector<Value*> next_values(const Node& node) {
  std::vector<Value*> next;
  for (Value* operand : passes::operands(node))
    if (graph::carries_gradient(operand->type)) next.push_back(operand);
  if (node.op == &op::linear && next.size() == 3) std::ranges::rotate(next, next.begin() + 2);
  return next;
}

/// torch::autograd::Engine with one thread: of the nodes that have all their gradients, the one
/// that was made last is next, and leaves come before all.
class Engine {
 public:
  Engine(std::span<Value* const> results, std::span<Value* const> leaves) : leaves_(leaves) {
    for (size_t i = 0; i < leaves.size(); ++i) numbers_.emplace(leaves[i], i);
    for (Value* result : results) count(result);
    for (Value* result : results) come_to(result);
  }

  std::vector<size_t> run() {
    std::vector<size_t> order;
    while (!ready_.empty()) {
      const Task task = ready_.top();
      ready_.pop();
      if (task.node == nullptr) {
        order.push_back(task.leaf);
        continue;
      }
      for (Value* value : next_values(*task.node)) come_to(value);
    }
    for (size_t i = 0; i < leaves_.size(); ++i)
      if (std::ranges::find(order, i) == order.end()) order.push_back(i);
    return order;
  }

 private:
  struct Task {
    uint64_t made;  ///< number of the node in the order in which the forward run comes to them
    const Node* node;
    size_t leaf;
    friend bool operator<(const Task& a, const Task& b) { return a.made < b.made; }
  };

  static bool leads_on(const Value* value) {
    return value->definition != nullptr && passes::passes_gradient(*value->definition);
  }

  const void* key(const Value* value) const {
    if (numbers_.contains(value)) return value;
    return leads_on(value) ? static_cast<const void*>(value->definition) : nullptr;
  }

  /// How many gradients each node and leaf waits for.
  void count(Value* from) {
    std::vector<Value*> open = {from};
    while (!open.empty()) {
      Value* value = open.back();
      open.pop_back();
      const void* of = key(value);
      if (of == nullptr || waits_for_[of]++ > 0 || of == value) continue;
      const std::vector<Value*> next = next_values(*value->definition);
      open.insert(open.end(), next.begin(), next.end());
    }
  }

  void come_to(Value* value) {
    const void* of = key(value);
    if (of == nullptr || --waits_for_[of] > 0) return;
    if (of == value)
      ready_.push({std::numeric_limits<uint64_t>::max(), nullptr, numbers_.at(value)});
    else
      ready_.push(
          {static_cast<uint64_t>(value->definition->outputs.front()->id), value->definition, 0});
  }

  std::span<Value* const> leaves_;
  std::unordered_map<const Value*, size_t> numbers_;
  std::unordered_map<const void*, size_t> waits_for_;
  std::priority_queue<Task> ready_;
};

}  // namespace

std::vector<size_t> order_of_leaves(std::span<Value* const> results,
                                    std::span<Value* const> leaves) {
  return Engine(results, leaves).run();
}

}  // namespace janus::torch
