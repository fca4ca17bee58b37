// See kept_results.h.
#include "passes/gradient/kept_results.h"

#include <algorithm>
#include <vector>

#include "graph/builder.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/gradient/saved_values.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Value;

namespace {

bool keeps_result(const Node& node, size_t index) {
  if (eager_saves_result(node, index)) return true;
  return node.op->vjp != nullptr && saved_values(node).outputs[index];
}

class KeptResults {
 public:
  explicit KeptResults(graph::Graph& graph) : graph_(graph) {}

  IsKept of(const Value& value) {
    Node* const node = value.definition;
    if (node == nullptr || !graph::carries_gradient(value.type)) return {.known = false};
    if (node->op == &op::if_) return of_branch(*node, value.index);
    if (node->op == &op::while_) return of_loop(*node, value.index);
    if (!node->blocks.empty() || node->op == &op::detach) return {.known = false};
    // Whether eager raises is not known of what may be a copy; it must not raise where eager
    // doesn't.
    if (node->attributes.get_or<bool>("_may_copy", false)) return {.known = false};
    const bool shares_memory = node->attributes.get_or<bool>("_shares_memory", false);
    if (node->op->is(graph::Trait::view) || shares_memory) return of(*node->inputs[0]);
    return {.known = keeps_result(*node, value.index)};
  }

 private:
  IsKept of_branch(Node& branch, size_t index) {
    std::vector<IsKept> sides;
    for (const auto& side : branch.blocks) sides.push_back(of(*side->results[index]));
    const auto is_like_first = [&](const IsKept& side) { return side.known == sides[0].known; };
    if (sides[0].known && std::ranges::all_of(sides, is_like_first)) return sides[0];
    for (size_t i = 0; i < sides.size(); ++i)
      branch.blocks[i]->results.push_back(at_end(*branch.blocks[i], sides[i]));
    return {.flag = graph_.new_output(branch, graph::Type::boolean(), "is_kept")};
  }

  /// A carried value that an iteration hands on as it is counts as one that no gradient keeps.
  IsKept of_loop(Node& loop, size_t index) {
    Block& body = *loop.blocks[1];
    const IsKept after = of(*body.results[index]);
    if (after.known && loop.attributes.get_or<int64_t>("minimum", 0) > 0) return after;
    const IsKept before = of(*loop.inputs[index]);
    if (before.known && before.known == after.known) return after;
    loop.inputs.push_back(before.known ? constant_in_front_of(loop, *before.known) : before.flag);
    for (const auto& block : loop.blocks)
      graph_.new_parameter(*block, graph::Type::boolean(), "is_kept");
    body.results.push_back(at_end(body, after));
    return {.flag = graph_.new_output(loop, graph::Type::boolean(), "is_kept")};
  }

  Value* at_end(Block& block, const IsKept& answer) {
    return answer.known ? graph::Builder(graph_, block).constant(*answer.known) : answer.flag;
  }

  Value* constant_in_front_of(const Node& node, bool value) {
    Block& block = *node.parent;
    Value* const constant = graph::Builder(graph_, block).constant(value);
    const auto before = std::ranges::find(block.nodes, &node);
    std::rotate(before, block.nodes.end() - 1, block.nodes.end());
    return constant;
  }

  graph::Graph& graph_;
};

}  // namespace

IsKept is_kept_by_gradient(graph::Graph& graph, const Value& value) {
  return KeptResults(graph).of(value);
}

}  // namespace janus::passes
