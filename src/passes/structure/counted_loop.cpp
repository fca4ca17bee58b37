// See counted_loop.h.
#include "passes/structure/counted_loop.h"

#include "graph/constant.h"
#include "graph/run_time_symbols.h"
#include "ops/attributes.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Block;
using graph::Dim;
using graph::Node;
using graph::Value;

namespace {

std::optional<Dim> size_of(const Value& value) {
  if (value.definition != nullptr && value.definition->op == &op::size)
    return ops::dim_attribute(value.definition->attributes, "of");
  const auto number = graph::constant_integer(&value);
  return number ? std::optional(Dim(*number)) : std::nullopt;
}

/// Whether it is one more than the counter.
bool is_next(const Value& value, const Value& counter) {
  const Node* sum = value.definition;
  if (sum == nullptr || sum->op != &op::scalar_add) return false;
  const size_t other = sum->inputs[0] == &counter ? 1 : 0;
  return sum->inputs[1 - other] == &counter && graph::constant_integer(sum->inputs[other]) == 1;
}

}  // namespace

std::optional<CountedLoop> CountedLoop::of(const Node& node) {
  if (node.op != &op::while_) return std::nullopt;
  const Block &condition = *node.blocks[0], &body = *node.blocks[1];
  const Node* test = condition.results.front()->definition;
  if (test == nullptr || test->op != &op::scalar_lt || test->parent != &condition)
    return std::nullopt;
  const Value* counter = test->inputs[0];
  const auto iterations = size_of(*test->inputs[1]);
  if (!iterations || counter->owner != &condition || !graph::symbols_given_in(body).empty())
    return std::nullopt;
  const size_t index = counter->index;
  const Value* inside = body.parameters[index];
  if (graph::constant_integer(node.inputs[index]) != 0 || !is_next(*body.results[index], *inside))
    return std::nullopt;
  return CountedLoop{node.blocks[1].get(), inside, *iterations};
}

bool is_of_iteration(const Node& row) {
  const Value* index = row.inputs[1];
  if (row.op != &op::row || index->owner == nullptr || index->owner->parent == nullptr)
    return false;
  const auto loop = CountedLoop::of(*index->owner->parent);
  return loop && loop->counter == index && loop->iterations == row.inputs[0]->type.shape.front();
}

}  // namespace janus::passes
