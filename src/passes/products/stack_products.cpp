// See stack_products.h.
#include "passes/products/stack_products.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/cost.h"
#include "graph/op.h"
#include "graph/rewriter.h"
#include "ops/attributes.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/view_rules.h"
#include "passes/analysis/escaping.h"
#include "passes/ordering/horizontal_groups.h"
#include "passes/products/side_by_side.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Dim;
using graph::Node;
using graph::Value;

/// A product of some rows with a matrix.
struct Product {
  Node* node;
  Value *rows, *matrix;
  Value* bias;  ///< null: none

  static std::optional<Product> of(Node& node) {
    const bool is_linear = node.op == &op::linear, is_vector = node.op == &op::mv;
    if (!is_linear && !is_vector && node.op != &op::mm) return std::nullopt;
    const Product product{&node, node.inputs[is_vector ? 1 : 0], node.inputs[is_vector ? 0 : 1],
                          is_linear && !node.inputs[2]->type.is_none() ? node.inputs[2] : nullptr};
    const graph::Type& type = product.rows->type;
    const bool fits = (type.dtype == graph::DType::f32 || type.dtype == graph::DType::f64) &&
                      type.rank() <= 2 && ops::at_least_zero(product.row_count());
    return fits ? std::optional(product) : std::nullopt;
  }

  bool is_row() const { return rows->type.rank() == 1; }
  Dim row_count() const { return is_row() ? Dim(1) : rows->type.shape.front(); }
};

using Group = std::vector<Product>;

Values rows_of(const Group& group) {
  Values rows;
  for (const Product& product : group) rows.push_back(product.rows);
  return rows;
}

bool puts_side_by_side(const Node& node) {
  return (node.op == &op::cat || node.op == &op::stack) &&
         ops::dim_of(node, node.output()->type.rank()) == 0;
}

Stacks stacks_in(const Block& block) {
  Stacks stacks;
  for (const Node* node : block.nodes)
    if (puts_side_by_side(*node)) stacks.add(node->inputs);
  return stacks;
}

/// A product is a call, and reads the whole matrix however few rows it has.
bool is_worth_it(const Group& group, const Stacks& stacks) {
  const int64_t matrix = graph::typical_elements(group.front().matrix->type);
  const auto fewer = static_cast<int64_t>(group.size()) - 1;
  return fewer * (matrix + graph::kElementsOfCall) > stacks.cost_of_joining(rows_of(group));
}

Group products_of(const NodeGroup& nodes) {
  Group group;
  for (Node* node : nodes) group.push_back(*Product::of(*node));
  return group;
}

/// The products in the order in which their rows lie somewhere, or will; none if it does not pay.
NodeGroup ordered(const NodeGroup& nodes, const Stacks& stacks) {
  const Values rows = rows_of(products_of(nodes));
  auto order = stacks.find(rows);
  if (!order) order = natural_order(rows);
  NodeGroup result;
  for (const size_t i : *order) result.push_back(nodes[i]);
  return is_worth_it(products_of(result), stacks) ? result : NodeGroup();
}

/// Products of rows with the same matrix.
Candidates products_in(const Block& block, const Escaping& escaping) {
  using Key = std::tuple<const graph::OpDef*, const Value*, const Value*, int64_t>;
  std::map<Key, Positions> positions;
  for (uint32_t i = 0; i < block.nodes.size(); ++i) {
    const auto product = Product::of(*block.nodes[i]);
    if (product && !escaping.contains(product->node->output()))
      positions[{product->node->op, product->matrix, product->bias, product->rows->type.rank()}]
          .push_back(i);
  }
  return {sets_of_several(std::move(positions)),
          [stacks = stacks_in(block)](const NodeGroup& nodes) { return ordered(nodes, stacks); }};
}

class Stacking {
 public:
  explicit Stacking(graph::Graph& graph)
      : escaping_(graph),
        groups_(graph, [this](const Block& block) { return products_in(block, escaping_); }),
        rewriter_(graph) {}

  graph::Graph run() {
    rewriter_.run([&](const Node& node) {
      if (groups_.meets(node, [&](const NodeGroup& all) { multiply(products_of(all)); }))
        return true;
      return node.outputs.size() == 1 && puts_side_by_side(node) && find(node);
    });
    return rewriter_.finish();
  }

 private:
  void multiply(const Group& group) {
    graph::Builder& builder = rewriter_.builder();
    const Product& first = group.front();
    const ops::Expression rows(builder, put_side_by_side(builder, rewriter_[rows_of(group)]));
    const ops::Expression matrix(builder, rewriter_[first.matrix]);
    Value* product =
        first.node->op == &op::linear
            ? op::linear(builder, {rows, matrix,
                                   first.bias == nullptr ? builder.none() : rewriter_[first.bias]})
        : first.node->op == &op::mv ? op::mm(builder, {rows, ops::transposed(matrix, 0, 1)})
                                    : op::mm(builder, {rows, matrix});
    Dim start(0);
    for (const Product& each : group) {
      const Dim stop = start + each.row_count();
      const ops::Expression whole(builder, product);
      rewriter_.replace(
          *each.node,
          {each.is_row()
               ? ops::apply(op::select, {{"dim", int64_t{0}}, {"index", ops::to_attribute(start)}},
                            whole)
               : ops::sliced(whole, 0, start, stop)});
      start = stop;
    }
  }

  /// Whether what the node puts side by side lies so.
  bool find(const Node& node) {
    const Values parts = rewriter_[node.inputs];
    if (escaping_.contains(node.output()) || !lie_together(parts)) return false;
    rewriter_.replace(node,
                      {found_side_by_side(rewriter_.builder(), parts, node.output()->type.shape)});
    return true;
  }

  const Escaping escaping_;
  HorizontalGroups groups_;
  graph::Rewriter rewriter_;
};

}  // namespace

graph::Graph stack_products(graph::Graph graph) { return Stacking(graph).run(); }

}  // namespace janus::passes
