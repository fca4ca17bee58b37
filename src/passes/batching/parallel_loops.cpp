// See parallel_loops.h.
#include "passes/batching/parallel_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/policy.h"
#include "graph/cost.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/batching/batching_rules.h"
#include "passes/ordering/order.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::loop_body;
using graph::Node;
using graph::Value;

bool has_few_rows(const Node& product) {
  const graph::Shape& shape = product.output()->type.shape;
  if (product.op == &op::mv || shape.size() < 2) return true;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (!shape[i].is_constant()) return false;
    rows *= shape[i].value();
  }
  return rows <= policy::kMostRowsDeferred;
}

/// A loop's products of few rows with a matrix of the body.
struct Products {
  std::vector<const Node*> nodes;
  std::set<const Value*> matrices;

  Products(const Node& loop, const Block& body) {
    graph::for_each_node(loop_body(loop), [&](const Node& node) {
      if (!node.op->is(graph::Trait::product) || !has_few_rows(node)) return;
      std::vector<const Value*> of_body;
      std::ranges::copy_if(node.inputs, std::back_inserter(of_body),
                           [&](const Value* input) { return is_matrix_of(*input, body); });
      if (of_body.empty()) return;
      nodes.push_back(&node);
      matrices.insert(of_body.begin(), of_body.end());
    });
  }

 private:
  static bool is_matrix_of(const Value& value, const Block& body) {
    const Block* place = value.definition != nullptr ? value.definition->parent : value.owner;
    return place == &body && value.type.is_tensor() && value.type.rank() == 2 &&
           graph::typical_elements(value.type) >= policy::kLeastElementsDeferred;
  }
};

// ---- from iteration to iteration ----------------------------------------------------------------

/// Who uses each value in an iteration, blocks within it included.
class Uses {
 public:
  explicit Uses(const Block& body) { add(body); }

  /// What a value leads to.
  std::unordered_set<const Value*> reached_from(std::vector<const Value*> waiting) const {
    return follow(std::move(waiting), leads_to_);
  }
  /// What leads to a value.
  std::unordered_set<const Value*> leading_to(std::vector<const Value*> waiting) const {
    return follow(std::move(waiting), comes_from_);
  }

  /// Whether a carried value only collects: something is added to it, and it is handed on.
  bool is_collected(const Value& value) const {
    const auto users = users_.find(&value);
    if (users == users_.end()) return true;
    return std::ranges::all_of(users->second, [&](const auto& use) {
      const auto& [node, index] = use;
      return node->op == &op::while_ ? is_collected(*loop_body(*node).parameters[index])
                                     : added_to(*node) == index;
    });
  }

 private:
  using Links = std::unordered_map<const Value*, std::vector<const Value*>>;

  static std::unordered_set<const Value*> follow(std::vector<const Value*> waiting,
                                                 const Links& links) {
    std::unordered_set<const Value*> found(waiting.begin(), waiting.end());
    while (!waiting.empty()) {
      const auto next = links.find(waiting.back());
      waiting.pop_back();
      if (next == links.end()) continue;
      for (const Value* value : next->second)
        if (found.insert(value).second) waiting.push_back(value);
    }
    return found;
  }

  void link(const Value* from, const Value* to) {
    leads_to_[from].push_back(to);
    comes_from_[to].push_back(from);
  }

  void add(const Block& block) {
    for (const Node* node : block.nodes) {
      for (size_t i = 0; i < node->inputs.size(); ++i)
        users_[node->inputs[i]].emplace_back(node, i);
      for (const auto& nested : node->blocks) add(*nested);
      if (node->op == &op::while_) {
        add_loop(*node);
        continue;
      }
      for (const Value* output : node->outputs) {
        for (const Value* input : node->inputs) link(input, output);
        for (const auto& nested : node->blocks)
          if (output->index < nested->results.size()) link(nested->results[output->index], output);
      }
    }
  }

  void add_loop(const Node& loop) {
    for (size_t i = 0; i < loop.inputs.size(); ++i)
      for (const Value* from : {loop.inputs[i], loop_body(loop).results[i]}) {
        link(from, loop.outputs[i]);
        for (const auto& block : loop.blocks) link(from, block->parameters[i]);
      }
  }

  Links leads_to_, comes_from_;
  std::unordered_map<const Value*, std::vector<std::pair<const Node*, size_t>>> users_;
};

/// Whether no product of an iteration needs one of the iteration before.
bool is_parallel(const Node& loop, const Products& products) {
  const Block& body = loop_body(loop);
  const Uses uses(body);
  std::vector<const Value*> begin, end;
  for (size_t i = 0; i < body.parameters.size(); ++i) {
    if (!body.parameters[i]->type.is_tensor() || uses.is_collected(*body.parameters[i])) continue;
    begin.push_back(body.parameters[i]);
    end.push_back(body.results[i]);
  }
  const auto reached = uses.reached_from(std::move(begin)),
             leading = uses.leading_to(std::move(end));
  return std::ranges::none_of(products.nodes, [&](const Node* node) {
    return reached.contains(node->output()) && leading.contains(node->output());
  });
}

// ---- beside each other ------------------------------------------------------------------------

/// The most of these nodes of a body that stand as far from its beginning, counted in such nodes.
size_t most_beside(const Block& body, const Predecessors& before,
                   const std::set<const Node*>& loops) {
  std::vector<uint32_t> depth(before.size());
  std::map<uint32_t, size_t> at_depth;
  size_t most = 0;
  for (uint32_t i = 0; i < before.size(); ++i) {
    for (const uint32_t other : before[i])
      depth[i] = std::max(depth[i], depth[other] + (loops.contains(body.nodes[other]) ? 1 : 0));
    if (loops.contains(body.nodes[i])) most = std::max(most, ++at_depth[depth[i]]);
  }
  return most;
}

}  // namespace

std::unordered_set<const Node*> parallel_loops(const Block& body) {
  std::unordered_set<const Node*> parallel;
  std::map<uint32_t, std::set<const Node*>> by_matrix;  // by its value's number
  for (const Node* node : body.nodes) {
    if (node->op != &op::while_) continue;
    const Products products(*node, body);
    for (const Value* matrix : products.matrices) by_matrix[matrix->id].insert(node);
    if (!products.nodes.empty() && is_parallel(*node, products)) parallel.insert(node);
  }
  if (by_matrix.empty()) return parallel;
  const Predecessors before = predecessors(body);
  for (const auto& [matrix, loops] : by_matrix)
    if (loops.size() >= policy::kLeastLoopsSideBySide &&
        most_beside(body, before, loops) >= policy::kLeastLoopsSideBySide)
      parallel.insert(loops.begin(), loops.end());
  return parallel;
}

}  // namespace janus::passes
