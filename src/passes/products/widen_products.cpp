// See widen_products.h.
#include "passes/products/widen_products.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/cost.h"
#include "graph/op.h"
#include "graph/rewriter.h"
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

bool has_bias(const Node& node) {
  return node.op == &op::linear && !node.inputs[2]->type.is_none();
}

/// A product of a matrix whose columns can be a part of a wider one.
bool is_product(const Node& node) {
  if (node.op != &op::linear && node.op != &op::mm) return false;
  const graph::Type& type = node.output()->type;
  return (type.dtype == graph::DType::f32 || type.dtype == graph::DType::f64) &&
         ops::at_least_zero(type.shape.back());
}

/// Operand `index` of each.
Values operands_of(const NodeGroup& group, size_t index) {
  Values values;
  for (const Node* node : group) values.push_back(node->inputs[index]);
  return values;
}

/// The matrices and biases of a group.
Values what_is_joined(const NodeGroup& group) {
  Values values = operands_of(group, 1);
  if (!has_bias(*group.front())) return values;
  const Values biases = operands_of(group, 2);
  values.insert(values.end(), biases.begin(), biases.end());
  return values;
}

/// A product reads all rows, however narrow the matrix is; but columns that are parts of a wider
/// matrix are read less easily. `times`: how many groups have the same matrices.
bool is_worth_it(const NodeGroup& group, int64_t times) {
  const auto size = [](const Value* value) { return graph::typical_elements(value->type); };
  const auto fewer = static_cast<int64_t>(group.size()) - 1;
  int64_t saved = fewer * (size(group.front()->inputs[0]) + graph::kElementsOfCall);
  for (const Node* node : group) saved -= size(node->output());
  int64_t price = cost_of_joining(operands_of(group, 1));
  if (has_bias(*group.front())) price += cost_of_joining(operands_of(group, 2));
  return saved * times > price;
}

NodeGroup in_order_of_matrices(NodeGroup group) {
  std::ranges::sort(group, {}, [](const Node* node) {
    return std::pair(node->inputs[1]->id, node->output()->id);
  });
  return group;
}

/// Products of the same rows.
Candidates products_in(const Block& block, const Escaping& escaping) {
  std::map<std::tuple<const graph::OpDef*, const Value*, bool>, Positions> positions;
  for (uint32_t i = 0; i < block.nodes.size(); ++i) {
    const Node& node = *block.nodes[i];
    if (is_product(node) && !escaping.contains(node.output()))
      positions[{node.op, node.inputs[0], has_bias(node)}].push_back(i);
  }
  Candidates candidates{sets_of_several(std::move(positions)), {}};
  // Rows of every iteration meet the same matrices, which are joined once.
  std::map<Values, int64_t> uses;
  for (const Positions& all : candidates.sets) {
    NodeGroup group;
    for (const uint32_t i : all) group.push_back(block.nodes[i]);
    ++uses[what_is_joined(in_order_of_matrices(std::move(group)))];
  }
  candidates.choose = [uses = std::move(uses)](NodeGroup nodes) {
    NodeGroup group = in_order_of_matrices(std::move(nodes));
    const auto found = uses.find(what_is_joined(group));
    return is_worth_it(group, found == uses.end() ? 1 : found->second) ? group : NodeGroup();
  };
  return candidates;
}

class Widening {
 public:
  explicit Widening(graph::Graph& graph)
      : escaping_(graph),
        groups_(graph, [this](const Block& block) { return products_in(block, escaping_); }),
        rewriter_(graph) {}

  graph::Graph run() {
    rewriter_.run([&](const Node& node) {
      return groups_.meets(node, [&](const NodeGroup& group) { multiply(group); });
    });
    return rewriter_.finish();
  }

 private:
  void multiply(const NodeGroup& group) {
    graph::Builder& builder = rewriter_.builder();
    const Node& first = *group.front();
    const bool is_linear = first.op == &op::linear;
    Values inputs = {rewriter_[first.inputs[0]], joined(group, 1, is_linear ? 0 : 1)};
    if (is_linear) inputs.push_back(has_bias(first) ? joined(group, 2, 0) : builder.none());
    const ops::Expression wide(builder, builder.append(*first.op, inputs)->output());
    Dim start(0);
    for (const Node* node : group) {
      const Dim stop = start + node->output()->type.shape.back();
      rewriter_.replace(*node, {ops::sliced(wide, wide.rank() - 1, start, stop)});
      start = stop;
    }
  }

  Value* joined(const NodeGroup& group, size_t index, int64_t dim) {
    const Values parts = rewriter_[operands_of(group, index)];
    return rewriter_.builder().append(op::cat, parts, {{"dim", dim}})->output();
  }

  const Escaping escaping_;
  HorizontalGroups groups_;
  graph::Rewriter rewriter_;
};

}  // namespace

graph::Graph widen_products(graph::Graph graph) { return Widening(graph).run(); }

}  // namespace janus::passes
