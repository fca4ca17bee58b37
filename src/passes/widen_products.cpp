// Multiplies rows by all matrices that they meet at once, as the queries, keys and values of an
// attention are made: a wide product takes less time than narrow ones.
//
// Does:       makes one product of `linear`s of one input, or of `mm`s with one left operand, that
//             do not depend on each other; the matrices come one after the other.
// Requires:   no composite operators, no `gradient` nodes; best after `stack_products`.
// Guarantees: the same values up to the rounding of sums.
// Must not:   make a cycle; copy more than it saves; let what leaves the graph (escaping.h) be a
//             part of a larger tensor.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "graph/rewriter.h"
#include "graph/typical_size.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/rows.h"
#include "ops/view_rules.h"
#include "passes/copied.h"
#include "passes/escaping.h"
#include "passes/passes.h"
#include "passes/side_by_side.h"
#include "passes/units.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Dim;
using graph::Node;
using graph::Value;

using Group = std::vector<Node*>;

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
Values operands_of(const Group& group, size_t index) {
  Values values;
  for (const Node* node : group) values.push_back(node->inputs[index]);
  return values;
}

/// The matrices and biases of a group.
Values what_is_joined(const Group& group) {
  Values values = operands_of(group, 1);
  if (!has_bias(*group.front())) return values;
  const Values biases = operands_of(group, 2);
  values.insert(values.end(), biases.begin(), biases.end());
  return values;
}

/// Which products of a graph are done together. Its blocks are put in an order in which the members
/// of each group stand side by side.
class Gathered {
 public:
  Gathered(graph::Graph& graph, const Escaping& escaping) : escaping_(escaping) {
    gather(graph.body());
  }

  /// Null: in none.
  const Group* group_of(const Node& node) const {
    const auto found = group_of_.find(&node);
    return found == group_of_.end() ? nullptr : found->second;
  }

 private:
  void gather(Block& block) {
    for (const Node* node : block.nodes)
      if (node->op != &op::rows)
        for (const auto& nested : node->blocks) gather(*nested);
    const auto alike = products(block);
    if (alike.empty()) return;
    // Rows of every round meet the same matrices, which are joined once.
    std::map<Values, int64_t> uses;
    for (const auto& positions : alike) ++uses[what_is_joined(at(block, positions))];
    Units units(block);
    for (const auto& all : alike)
      for (const auto& positions : units.independent(all)) {
        Group group = at(block, positions);
        const int64_t times = std::max<int64_t>(1, uses[what_is_joined(group)]);
        if (group.size() < 2 || !is_worth_it(group, times)) continue;
        units.join(positions);
        groups_.push_back(std::make_unique<Group>(std::move(group)));
        for (const Node* node : *groups_.back()) group_of_.emplace(node, groups_.back().get());
      }
    units.put_in_order(block);
  }

  /// The positions of products of the same rows, more than one each.
  std::vector<std::vector<uint32_t>> products(const Block& block) const {
    std::map<std::tuple<const graph::OpDef*, const Value*, bool>, std::vector<uint32_t>> positions;
    for (uint32_t i = 0; i < block.nodes.size(); ++i) {
      const Node& node = *block.nodes[i];
      if (is_product(node) && !escaping_.contains(node.output()))
        positions[{node.op, node.inputs[0], has_bias(node)}].push_back(i);
    }
    std::vector<std::vector<uint32_t>> result;
    for (auto& [key, each] : positions)
      if (each.size() > 1) result.push_back(std::move(each));
    std::ranges::sort(result);  // not by where things happen to be in memory
    return result;
  }

  /// In the order of their matrices.
  static Group at(const Block& block, const std::vector<uint32_t>& positions) {
    Group group;
    for (const uint32_t i : positions) group.push_back(block.nodes[i]);
    std::ranges::sort(group, {}, [](const Node* node) {
      return std::pair(node->inputs[1]->id, node->output()->id);
    });
    return group;
  }

  /// A product reads all rows, however narrow the matrix is; but columns that are parts of a wider
  /// matrix are read less easily. `times`: how many groups have the same matrices.
  static bool is_worth_it(const Group& group, int64_t times) {
    const auto size = [](const Value* value) {
      return graph::typical_size(graph::element_count(value->type.shape));
    };
    const auto fewer = static_cast<int64_t>(group.size()) - 1;
    int64_t saved = fewer * (size(group.front()->inputs[0]) + price_of_call);
    for (const Node* node : group) saved -= size(node->output());
    int64_t price = price_of_moving(operands_of(group, 1));
    if (has_bias(*group.front())) price += price_of_moving(operands_of(group, 2));
    return saved * times > price;
  }

  const Escaping& escaping_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::unordered_map<const Node*, const Group*> group_of_;
};

class Widening {
 public:
  explicit Widening(graph::Graph& graph)
      : escaping_(graph), gathered_(graph, escaping_), rewriter_(graph) {}

  graph::Graph run() {
    rewriter_.run([&](const Node& node) {
      const Group* group = gathered_.group_of(node);
      if (group == nullptr) return false;
      if (++met_[group] == group->size()) multiply(*group);
      return true;
    });
    return rewriter_.finish();
  }

 private:
  void multiply(const Group& group) {
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

  Value* joined(const Group& group, size_t index, int64_t dim) {
    const Values parts = rewriter_[operands_of(group, index)];
    return rewriter_.builder().append(op::cat, parts, {{"dim", dim}})->output();
  }

  const Escaping escaping_;
  const Gathered gathered_;
  graph::Rewriter rewriter_;
  std::unordered_map<const Group*, size_t> met_;
};

}  // namespace

graph::Graph widen_products(const graph::Graph& graph) {
  graph::Graph own = copied(graph);
  return Widening(own).run();
}

}  // namespace janus::passes
