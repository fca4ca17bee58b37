// See weight_prepacking.h.
#include "passes/products/weight_prepacking.h"

#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/policy.h"
#include "graph/cost.h"
#include "graph/op.h"
#include "graph/rewriter.h"
#include "ops/expression.h"
#include "ops/list.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Node;
using graph::Value;

/// A product of some rows with a transposed matrix.
struct Product {
  const Value *rows, *matrix;
  const Value* bias;  ///< null: none

  static std::optional<Product> of(const Node& node) {
    std::optional<Product> product;
    if (node.op == &op::linear)
      product = {node.inputs[0], node.inputs[1],
                 node.inputs[2]->type.is_none() ? nullptr : node.inputs[2]};
    else if (const Value* turned = node.op == &op::mm ? turned_by(*node.inputs[1]) : nullptr)
      product = {node.inputs[0], turned, nullptr};
    return product && product->gains() ? product : std::nullopt;
  }

 private:
  /// What the value is the transposed matrix of; null: it is none.
  static const Value* turned_by(const Value& value) {
    const Node* node = value.definition;
    const bool is_turned =
        node != nullptr && node->op == &op::transpose && value.type.rank() == 2 &&
        node->attributes.get<int64_t>("dim0") != node->attributes.get<int64_t>("dim1");
    return is_turned ? node->inputs[0] : nullptr;
  }

  bool gains() const {
    const graph::Type& type = matrix->type;
    return (type.dtype == graph::DType::f32 || type.dtype == graph::DType::f64) &&
           rows->type.dtype == type.dtype && rows->type.rank() == 2 && type.rank() == 2 &&
           graph::typical_size(rows->type.shape[0]) <= policy::kMostRowsOfPacked &&
           graph::typical_size(type.shape[0]) >= policy::kLeastSideOfPacked &&
           graph::typical_size(type.shape[1]) >= policy::kLeastSideOfPacked;
  }
};

/// The products of the graph's body, and of loops in it, with matrices that are there before.
class Turnable {
 public:
  explicit Turnable(const graph::Graph& graph) {
    const Block& body = graph.body();
    known_.insert(body.parameters.begin(), body.parameters.end());
    for (const Node* node : body.nodes) known_.insert(node->outputs.begin(), node->outputs.end());
    for (const Node* node : body.nodes) count(*node, *node, 1);
    for (const auto& [matrix, uses] : uses_)
      if (uses.products >= policy::kLeastProductsOfPacked)
        first_users_[uses.first].push_back(matrix);
  }

  /// The matrices that are first needed by this node of the body, or in it.
  std::vector<const Value*> first_needed_by(const Node& node) const {
    const auto found = first_users_.find(&node);
    return found == first_users_.end() ? std::vector<const Value*>() : found->second;
  }
  /// Whether the node is a product that was counted.
  bool has(const Node& node) const { return products_.contains(&node); }

 private:
  struct Uses {
    const Node* first = nullptr;
    int64_t products = 0;
  };
  struct ByNumber {
    bool operator()(const Value* a, const Value* b) const { return a->id < b->id; }
  };

  void count(const Node& node, const Node& in_body, int64_t times) {
    if (const auto product = Product::of(node); product && known_.contains(product->matrix)) {
      Uses& uses = uses_[product->matrix];
      if (uses.first == nullptr) uses.first = &in_body;
      uses.products += times;
      products_.insert(&node);
    }
    if (node.op != &op::while_) return;
    for (const auto& block : node.blocks)
      for (const Node* inner : block->nodes)
        count(*inner, in_body, times * policy::kTypicalIterations);
  }

  std::unordered_set<const Value*> known_;  // all that the body defines
  std::unordered_set<const Node*> products_;
  std::map<const Value*, Uses, ByNumber> uses_;
  std::unordered_map<const Node*, std::vector<const Value*>> first_users_;
};

class Turning {
 public:
  explicit Turning(const graph::Graph& graph) : turnable_(graph), rewriter_(graph) {}

  graph::Graph run() {
    rewriter_.run([&](const Node& node) {
      for (const Value* matrix : turnable_.first_needed_by(node)) turn(matrix);
      return turnable_.has(node) && multiply(node);
    });
    return rewriter_.finish();
  }

 private:
  void turn(const Value* matrix) {
    const ops::Expression whole(rewriter_.builder(), rewriter_[matrix]);
    turned_[matrix] = ops::apply(op::contiguous, ops::transposed(whole, 0, 1));
  }

  bool multiply(const Node& node) {
    const Product product = *Product::of(node);
    const auto found = turned_.find(product.matrix);
    if (found == turned_.end()) return false;
    graph::Builder& builder = rewriter_.builder();
    Value* const rows = rewriter_[product.rows];
    rewriter_.replace(node, {product.bias == nullptr ? op::mm(builder, {rows, found->second})
                                                     : op::addmm(builder, {rewriter_[product.bias],
                                                                           rows, found->second})});
    return true;
  }

  const Turnable turnable_;
  graph::Rewriter rewriter_;
  std::unordered_map<const Value*, Value*> turned_;  // by the old graph's value
};

}  // namespace

graph::Graph prepack_weights(const graph::Graph& graph) { return Turning(graph).run(); }

}  // namespace janus::passes
