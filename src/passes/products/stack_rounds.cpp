// See stack_rounds.h.
#include "passes/products/stack_rounds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/constant.h"
#include "graph/cost.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/shape_rules.h"
#include "passes/products/side_by_side.h"
#include "passes/structure/contains.h"
#include "passes/structure/copied.h"
#include "passes/structure/counted_loop.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Dim;
using graph::Node;
using graph::Value;

const Node* made_by(const Value& value, const graph::OpDef& op) {
  return value.definition != nullptr && value.definition->op == &op ? value.definition : nullptr;
}

/// The list of which the loop takes the last element in each iteration until there is none; null if
/// it does not end so.
const Value* list_taken_down(const Node& loop) {
  const Block &condition = *loop.blocks[0], &body = *loop.blocks[1];
  const Node* test = made_by(*condition.results.front(), op::scalar_gt);
  if (test == nullptr || graph::constant_integer(test->inputs[1]) != 0) return nullptr;
  const Node* size = made_by(*test->inputs[0], op::list_size);
  if (size == nullptr || size->inputs[0]->owner != &condition) return nullptr;
  const size_t k = size->inputs[0]->index;
  const Node* pop = made_by(*body.results[k], op::list_pop);
  const bool pops_once =
      pop != nullptr && pop->outputs[0] == body.results[k] && pop->inputs[0] == body.parameters[k];
  return pops_once ? loop.inputs[k] : nullptr;
}

/// The number of iterations of a loop that counts them, or that takes down a list that such a loop
/// has built.
std::optional<Dim> iterations_of(const Node& loop) {
  if (const auto counted = CountedLoop::of(loop)) return counted->iterations;
  const Value* list = list_taken_down(loop);
  const Node* builder = list == nullptr ? nullptr : list->definition;
  const auto counted = builder == nullptr ? std::nullopt : CountedLoop::of(*builder);
  if (!counted || made_by(*builder->inputs[list->index], op::list_new) == nullptr)
    return std::nullopt;
  const Node* push = made_by(*counted->body->results[list->index], op::list_push);
  const bool pushes_once =
      push != nullptr && push->inputs[0] == counted->body->parameters[list->index];
  return pushes_once ? std::optional(counted->iterations) : std::nullopt;
}

/// transpose(left) right: matrices with as many rows.
struct RowsProduct {
  Value* left;
  Value* right;
};

class Stacker {
 public:
  explicit Stacker(graph::Graph& graph) : graph_(graph), uses_(graph.value_count()) {
    use(graph.results());
    graph::for_each_node(graph.body(), [&](const Node& node) {
      use(node.inputs);
      for (const auto& block : node.blocks) use(block->results);
      if (node.op == &op::state) note_sizes(*node.output());
    });
    for (const Value* input : graph.inputs()) note_sizes(*input);
  }

  void run(Block& block) {
    const std::vector<Node*> nodes = std::exchange(block.nodes, {});
    for (Node* node : nodes) {
      for (Value*& input : node->inputs) input = now(input);
      for (const auto& nested : node->blocks) run(*nested);
      const auto iterations = node->op == &op::while_ ? iterations_of(*node) : std::nullopt;
      if (!iterations || !has_iterations(*iterations))
        block.nodes.push_back(node);
      else
        stack(block, *node, *iterations);
    }
    for (Value*& result : block.results) result = now(result);
  }

 private:
  void use(std::span<Value* const> values) {
    for (const Value* value : values) ++uses_[value->id];
  }

  /// Only a size of a tensor is surely more than none: graphs are made for those of 0 apart.
  void note_sizes(const Value& value) {
    if (!value.type.is_tensor()) return;
    for (const Dim& dim : value.type.shape)
      if (!dim.is_constant()) sizes_.push_back(dim);
  }
  bool has_iterations(const Dim& iterations) const {
    return iterations.is_constant() ? iterations.value() > 0
                                    : std::ranges::find(sizes_, iterations) != sizes_.end();
  }

  /// 0 for what the pass has made.
  uint32_t uses(const Value& value) const { return value.id < uses_.size() ? uses_[value.id] : 0; }

  Value* now(Value* value) const {
    const auto found = now_.find(value);
    return found == now_.end() ? value : found->second;
  }

  /// Puts the loop into the block, with what it needs in front and what takes its work behind.
  void stack(Block& block, Node& loop, const Dim& iterations) {
    std::vector<std::pair<size_t, std::vector<RowsProduct>>> sums;
    for (size_t k = 0; k < loop.inputs.size(); ++k)
      if (auto products = products_added(loop, k); pays(products))
        sums.emplace_back(k, std::move(products));
    std::map<Value*, Value*> lists;  // by matrix: what the loop gives
    graph::Builder builder(graph_, block);
    builder.set_span(loop.span);
    for (const auto& [k, products] : sums) {
      loop.blocks[1]->results[k] = loop.blocks[1]->parameters[k];
      for (const RowsProduct& each : products)
        for (Value* matrix : {each.left, each.right})
          if (Value*& list = lists[matrix]; list == nullptr) list = keep(builder, loop, matrix);
    }
    block.nodes.push_back(&loop);
    std::map<Value*, Value*> stacks;
    const auto stacked = [&](Value* matrix) {
      Value*& made = stacks[matrix];
      if (made == nullptr) made = all_rows(builder, lists.at(matrix), iterations);
      return made;
    };
    for (const auto& [k, products] : sums) {
      Value* sum = loop.inputs[k];
      for (const RowsProduct& each : products)
        sum = add(builder, sum, stacked(each.left), stacked(each.right));
      now_[loop.outputs[k]] = sum;
    }
  }

  /// The products that carried value `k` is added to in each iteration, and nothing is done with it
  /// but that; none if there is anything else.
  std::vector<RowsProduct> products_added(const Node& loop, size_t k) const {
    const Block& body = *loop.blocks[1];
    if (uses(*loop.blocks[0]->parameters[k]) > 0) return {};
    std::vector<RowsProduct> products;
    const Value* sum = body.results[k];
    while (sum != body.parameters[k]) {
      const Node* node = made_by(*sum, op::addmm);
      if (node == nullptr || uses(*sum) != 1 || node->parent != &body || !adds_as_it_is(*node))
        return {};
      const Node* left = made_by(*node->inputs[1], op::transpose);
      if (left == nullptr || left->inputs[0]->type.rank() != 2 || !swaps_dims(*left)) return {};
      products.insert(products.begin(), {left->inputs[0], node->inputs[2]});
      sum = node->inputs[0];
    }
    return uses(*sum) == 1 ? products : std::vector<RowsProduct>();
  }

  static bool adds_as_it_is(const Node& node) {
    return node.inputs[0]->type == node.output()->type &&
           graph::constant_number(node.inputs[3]) == 1 &&
           graph::constant_number(node.inputs[4]) == 1;
  }

  static bool swaps_dims(const Node& transpose) {
    const auto dim = [&](const char* name) {
      return ops::wrap_dim(ops::integer_attribute(transpose.attributes, name), 2);
    };
    return dim("dim0") != dim("dim1");
  }

  /// Whether reading and writing the sum in each iteration takes longer than keeping the rows and
  /// concatenating them. The rows lie in memory that no iteration uses again.
  static bool pays(const std::vector<RowsProduct>& products) {
    int64_t won = 0, lost = 0;
    for (const RowsProduct& each : products) {
      const auto size = [](const Value* matrix) { return graph::typical_elements(matrix->type); };
      won += graph::typical_size(each.left->type.shape[1] * each.right->type.shape[1]);
      lost += graph::kElementsOfKept * (size(each.left) + size(each.right));
    }
    return won > lost;
  }

  /// Lets the loop push the matrix of each iteration; gives the list.
  Value* keep(graph::Builder& front, Node& loop, Value* matrix) {
    const graph::Type type = graph::Type::list(matrix->type);
    loop.inputs.push_back(front.append_unchecked(op::list_new, {}, {}, {type})->output());
    graph_.new_parameter(*loop.blocks[0], type);
    Block& body = *loop.blocks[1];
    Value* list = graph_.new_parameter(body, type);
    graph::Builder builder(graph_, body);
    builder.set_span(loop.span);
    body.results.push_back(op::list_push(builder, {list, matrix}));
    return graph_.new_output(loop, type);
  }

  static Value* all_rows(graph::Builder& builder, Value* list, const Dim& iterations) {
    const ops::Expression stacked(
        builder, op::list_stack(builder, {list},
                                {{"dim", int64_t{0}}, {"size", ops::to_attribute(iterations)}}));
    const graph::Shape& shape = stacked.shape();
    return ops::reshaped(stacked, {shape[0] * shape[1], shape[2]}).value();
  }

  static Value* add(graph::Builder& builder, Value* sum, Value* left, Value* right) {
    Value* rows = op::transpose(builder, {left}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
    const Node* full = made_by(*sum, op::full);
    if (full != nullptr && graph::constant_number(full->inputs[0]) == 0)
      return op::mm(builder, {rows, right});
    return op::addmm(builder, {sum, rows, right});
  }

  graph::Graph& graph_;
  std::vector<uint32_t> uses_;  // by Value::id, as before the pass
  std::vector<Dim> sizes_;
  std::unordered_map<const Value*, Value*> now_;  ///< what stands for a result
};

}  // namespace

graph::Graph stack_rounds(graph::Graph graph) {
  if (!contains(graph, op::while_)) return graph;
  Stacker(graph).run(graph.body());
  return copied(graph);
}

}  // namespace janus::passes
