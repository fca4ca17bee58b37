// Multiplies all rows of a tensor in front of the loop that takes one in each round.
//
// Does:       where a `while` counts its rounds up to the size of a tensor, and takes the row of
//             that number, computes products of what is made of the row and of values from outside
//             alone for all rows at once; the rounds take their rows of the result. Done before
//             differentiation, it makes the gradients of such products one product each, too.
// Requires:   no composite operators; best after `hoist`.
// Guarantees: the same values up to the rounding of sums.
// Must not:   compute rows that no round would reach; touch a loop that differentiates inside.
#include <algorithm>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/constant.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "passes/copied.h"
#include "passes/hoist.h"
#include "passes/passes.h"
#include "passes/reachability.h"
#include "passes/row_forms.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Dim;
using graph::Node;
using graph::Trait;
using graph::Value;

/// A loop with as many rounds as a dimension is large.
struct CountedLoop {
  Block* body;
  const Value* counter;  ///< 0 in the first round, 1 in the next
  Dim rounds;

  static std::optional<CountedLoop> of(const Node& node) {
    if (node.op != &op::while_) return std::nullopt;
    const Block &condition = *node.blocks[0], &body = *node.blocks[1];
    const Node* test = condition.results.front()->definition;
    if (test == nullptr || test->op != &op::scalar_lt || test->parent != &condition)
      return std::nullopt;
    const auto rounds = size_of(*test->inputs[1]);
    const Value* counter = test->inputs[0];
    if (!rounds || counter->owner != &condition) return std::nullopt;
    const size_t index = counter->index;
    const bool counts = graph::constant_integer(node.inputs[index]) == 0 &&
                        is_next(*body.results[index], *body.parameters[index]);
    if (!counts) return std::nullopt;
    return CountedLoop{node.blocks[1].get(), body.parameters[index], *rounds};
  }

 private:
  static std::optional<Dim> size_of(const Value& value) {
    if (value.definition != nullptr && value.definition->op == &op::size)
      return ops::dim_attribute(value.definition->attributes, "of");
    const auto number = graph::constant_integer(&value);
    return number ? std::optional(Dim(*number)) : std::nullopt;
  }
  static bool is_next(const Value& next, const Value& counter) {
    const Node* sum = next.definition;
    if (sum == nullptr || sum->op != &op::scalar_add) return false;
    const size_t index = sum->inputs[0] == &counter ? 1 : 0;
    return sum->inputs[1 - index] == &counter && graph::constant_integer(sum->inputs[index]) == 1;
  }
};

/// What the rounds of one loop compute of their rows.
class Rows {
 public:
  Rows(const CountedLoop& loop, graph::Builder& front) : loop_(loop), front_(front) {}

  void multiply_in_front() {
    for (Node* node : loop_.body->nodes) {
      if (is_row(*node) || is_of_rows(*node)) of_rows_.insert(node);
      const bool is_product = node->op == &op::linear || node->op == &op::mm || node->op == &op::mv;
      Value* all = is_product && of_rows_.contains(node) ? for_all_rows(*node->output()) : nullptr;
      if (all == nullptr) continue;
      node->op = &op::row;
      node->inputs = {all, const_cast<Value*>(loop_.counter)};
      node->attributes = {};
    }
    drop_unused();
  }

 private:
  bool is_row(const Node& node) const {
    return node.op == &op::row && node.inputs[1] == loop_.counter && is_outer(*node.inputs[0]) &&
           node.inputs[0]->type.shape.front() == loop_.rounds;
  }

  /// Made of values that are made of rows, and of values from outside.
  bool is_of_rows(const Node& node) const {
    const bool computes = node.op->is(Trait::pure) && !node.op->is(Trait::random) &&
                          !node.op->is(Trait::may_fail) && node.blocks.empty() &&
                          node.outputs.size() == 1;
    return computes &&
           std::ranges::any_of(node.inputs,
                               [&](const Value* input) { return is_made_of_rows(*input); }) &&
           std::ranges::all_of(node.inputs, [&](const Value* input) {
             return is_made_of_rows(*input) || is_outer(*input);
           });
  }
  bool is_made_of_rows(const Value& value) const { return of_rows_.contains(value.definition); }
  bool is_outer(const Value& value) const { return !is_inside(value, *loop_.body); }

  /// What was made of rows for these products alone. (A row is there in each round, so that nothing
  /// that could fail is lost.)
  void drop_unused() {
    std::unordered_set<const Value*> used(loop_.body->results.begin(), loop_.body->results.end());
    std::unordered_set<const Node*> dropped;
    for (const Node* node : loop_.body->nodes | std::views::reverse) {
      const auto is_used = [&](const Value* output) { return used.contains(output); };
      if (of_rows_.contains(node) && std::ranges::none_of(node->outputs, is_used)) {
        dropped.insert(node);
      } else {
        for (const Value* operand : operands(*node)) used.insert(operand);
      }
    }
    std::erase_if(loop_.body->nodes, [&](const Node* node) { return dropped.contains(node); });
  }

  /// The value of all rounds, in front of the loop; null if there is no such form of what it is
  /// computed by.
  Value* for_all_rows(const Value& value) {
    const auto [found, is_new] = all_.try_emplace(&value, nullptr);
    if (!is_new) return found->second;
    Value* all = computed(*value.definition);
    all_[&value] = all;
    return all;
  }

  Value* computed(const Node& node) {
    if (is_row(node)) return node.inputs[0];
    std::vector<Value*> inputs;
    std::vector<bool> stacked;
    for (Value* input : node.inputs) {
      stacked.push_back(is_made_of_rows(*input));
      inputs.push_back(stacked.back() ? for_all_rows(*input) : input);
      if (inputs.back() == nullptr) return nullptr;
    }
    try {
      const auto results = append_for_rows(front_, node, inputs, stacked, loop_.rounds);
      return results ? results->front() : nullptr;
    } catch (const graph::TypeError&) {
      return nullptr;
    }
  }

  const CountedLoop& loop_;
  graph::Builder& front_;
  std::unordered_set<const Node*> of_rows_;
  std::unordered_map<const Value*, Value*> all_;
};

void hoist_rows(graph::Graph& graph, Block& block) {
  const std::vector<Node*> nodes = std::exchange(block.nodes, {});
  for (Node* node : nodes) {
    for (const auto& nested : node->blocks) hoist_rows(graph, *nested);
    if (const auto loop = CountedLoop::of(*node); loop && !differentiates(*loop->body)) {
      graph::Builder front(graph, block);
      Rows(*loop, front).multiply_in_front();
    }
    block.nodes.push_back(node);
  }
}

}  // namespace

graph::Graph hoist_rows(const graph::Graph& graph) {
  graph::Graph result = copied(graph);
  hoist_rows(result, result.body());
  return copied(result);
}

}  // namespace janus::passes
