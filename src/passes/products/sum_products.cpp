// See sum_products.h.
#include "passes/products/sum_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/constant.h"
#include "graph/cost.h"
#include "graph/op.h"
#include "graph/rewriter.h"
#include "ops/attributes.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/rows.h"
#include "ops/shape_rules.h"
#include "passes/products/side_by_side.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Node;
using graph::Value;

/// A sum of tensors of one type, as eager adds them up: one after the other.
bool is_plain_sum(const Node& node) {
  if (node.op != &op::add) return false;
  const graph::Type& type = node.output()->type;
  return (type.dtype == graph::DType::f32 || type.dtype == graph::DType::f64) &&
         node.inputs[0]->type == type && node.inputs[1]->type == type &&
         graph::constant_number(node.inputs[2]) == 1;
}

/// The matrix that was transposed, if one was.
Value* transposed_from(const Value& value) {
  const Node* node = value.definition;
  if (node == nullptr || node->op != &op::transpose || value.type.rank() != 2) return nullptr;
  const auto dim = [&](const char* name) {
    return ops::wrap_dim(ops::integer_attribute(node->attributes, name), 2);
  };
  return dim("dim0") != dim("dim1") ? node->inputs[0] : nullptr;
}

bool adds_up_rows(const Node& node) {
  return node.op == &op::sum && node.inputs[0]->type.rank() == 2 &&
         node.output()->type.rank() == 1 &&
         ops::reduced_dims(node.attributes, "dim", 2) == std::vector<int64_t>{0} &&
         node.output()->type.dtype == node.inputs[0]->type.dtype;
}

Values in_order(const Values& values, const std::vector<size_t>& order) {
  Values result;
  for (const size_t i : order) result.push_back(values[i]);
  return result;
}

/// A sum, and what is to be computed in place of its terms.
struct Sum {
  const Node* root = nullptr;
  Values terms;             ///< that stay as they are
  Values lefts, rights;     ///< of products: matrices with as many rows each, lefts not transposed
  Values columns, factors;  ///< of other products
  Values matrices;          ///< whose rows are added up
  Values parts;             ///< by index
  const Node* part = nullptr;  ///< what puts the first of them into zeros
};

class Planner {
 public:
  explicit Planner(const graph::Graph& graph) : uses_(graph.value_count()) {
    use(graph.results());
    graph::for_each_node(graph.body(), [&](const Node& node) {
      use(node.inputs);
      for (const auto& block : node.blocks) use(block->results);
    });
    plan(graph.body());
  }

  /// What becomes of the sum that ends here; null if none does, or nothing of it.
  const Sum* sum_at(const Node& node) const {
    const auto found = sums_.find(&node);
    return found == sums_.end() ? nullptr : &found->second;
  }
  bool is_dropped(const Node& node) const { return dropped_.contains(&node); }

 private:
  void use(std::span<Value* const> values) {
    for (const Value* value : values) ++uses_[value->id];
  }

  void plan(const Block& block) {
    std::vector<Sum> sums = collect(block);
    Stacks stacks;
    for (Sum& sum : sums) stack_products(sum, stacks);
    for (Sum& sum : sums) stack_matrices(sum, stacks);
    for (Sum& sum : sums) {
      widen_products(sum);
      gather_parts(sum);
      const bool changed =
          !sum.lefts.empty() || !sum.columns.empty() || !sum.matrices.empty() || !sum.parts.empty();
      if (changed) keep(std::move(sum));
    }
    for (const Node* node : block.nodes)
      if (node->op != &op::rows)
        for (const auto& nested : node->blocks) plan(*nested);
  }

  /// The sums that are no terms of others.
  std::vector<Sum> collect(const Block& block) {
    std::vector<Sum> sums;
    std::unordered_set<const Node*> inner;
    for (size_t i = block.nodes.size(); i-- > 0;) {
      const Node& node = *block.nodes[i];
      if (!is_plain_sum(node) || inner.contains(&node)) continue;
      Sum sum{.root = &node, .terms = {}};
      Values open = {node.inputs[1], node.inputs[0]};
      while (!open.empty()) {
        Value* term = open.back();
        open.pop_back();
        const Node* made = term->definition;
        if (is_own_term(*term, node) && is_plain_sum(*made)) {
          inner.insert(made);
          open.insert(open.end(), {made->inputs[1], made->inputs[0]});
        } else {
          sum.terms.push_back(term);
        }
      }
      sums.push_back(std::move(sum));
    }
    std::ranges::reverse(sums);
    return sums;
  }

  /// Whether nothing but the sum needs it.
  bool is_own_term(const Value& term, const Node& root) const {
    return term.definition != nullptr && term.definition->parent == root.parent &&
           uses_[term.id] == 1;
  }

  /// Moves the terms for which `fits` holds out of the sum.
  template <class Fits>
  Values take(Sum& sum, Fits&& fits) const {
    Values taken, rest;
    for (Value* term : sum.terms) {
      const bool takes = is_own_term(*term, *sum.root) && fits(*term->definition);
      (takes ? taken : rest).push_back(term);
    }
    if (taken.size() < 2) return {};
    sum.terms = std::move(rest);
    return taken;
  }

  void stack_products(Sum& sum, Stacks& stacks) const {
    const Values before = sum.terms;
    const Values products = take(sum, [](const Node& node) {
      return node.op == &op::mm && transposed_from(*node.inputs[0]) != nullptr;
    });
    if (products.empty()) return;
    Values lefts, rights;
    for (const Value* product : products) {
      lefts.push_back(transposed_from(*product->definition->inputs[0]));
      rights.push_back(product->definition->inputs[1]);
    }
    auto order = stacks.find(lefts);
    if (!order) order = stacks.find(rights);
    if (!order) order = natural_order(rights);
    lefts = in_order(lefts, *order);
    rights = in_order(rights, *order);
    const auto fewer = static_cast<int64_t>(products.size()) - 1;
    if (fewer * cost_of_term(*sum.root) <=
        stacks.cost_of_joining(lefts) + stacks.cost_of_joining(rights)) {
      sum.terms = before;
      return;
    }
    stacks.add(lefts);
    stacks.add(rights);
    sum.lefts = std::move(lefts);
    sum.rights = std::move(rights);
  }

  /// A product that a term is, or has the elements of; null if it is none.
  const Node* product_in(const Node& term) const {
    const Node* node = term.op == &op::reshape ? term.inputs[0]->definition : &term;
    const bool is_own = node != nullptr && node->op == &op::mm && uses_[node->output()->id] == 1;
    return is_own ? node : nullptr;
  }

  /// Products of narrow matrices, as the inputs' gradients of the heads of an attention are.
  void widen_products(Sum& sum) const {
    const Values before = sum.terms;
    const Node* first = nullptr;
    const Values terms = take(sum, [&](const Node& node) {
      const Node* product = product_in(node);
      if (product == nullptr || transposed_from(*product->inputs[0]) != nullptr) return false;
      if (first == nullptr) first = product;
      return product->output()->type == first->output()->type;
    });
    if (terms.empty()) return;
    Values columns, factors;
    for (const Value* term : terms) {
      columns.push_back(product_in(*term->definition)->inputs[0]);
      factors.push_back(product_in(*term->definition)->inputs[1]);
    }
    const std::vector<size_t> order = natural_order(factors);
    const auto fewer = static_cast<int64_t>(terms.size()) - 1;
    // Columns never lie together, rows may.
    if (fewer * cost_of_term(*sum.root) <=
        cost_of_joining(columns) + cost_of_joining(in_order(factors, order))) {
      sum.terms = before;
      return;
    }
    sum.columns = in_order(columns, order);
    sum.factors = in_order(factors, order);
  }

  /// What a product more in the sum costs: a call, and what goes through memory to add it.
  static int64_t cost_of_term(const Node& root) {
    constexpr int64_t operands_and_result = 3;
    return graph::kElementsOfCall +
           operands_and_result * graph::typical_elements(root.output()->type);
  }

  void stack_matrices(Sum& sum, const Stacks& stacks) const {
    const Values before = sum.terms;
    Values matrices;
    for (const Value* term : take(sum, adds_up_rows))
      matrices.push_back(term->definition->inputs[0]);
    if (matrices.empty()) return;
    if (const auto order = stacks.find(matrices)) {
      sum.matrices = in_order(matrices, *order);
    } else {
      sum.terms = before;
    }
  }

  void gather_parts(Sum& sum) const {
    const Values before = sum.terms;
    std::map<int64_t, const Node*> by_index;
    const Node* first = nullptr;
    const Values terms = take(sum, [&](const Node& node) {
      if (node.op != &op::select_backward) return false;
      const graph::Dim index = ops::dim_attribute(node.attributes, "index");
      if (first == nullptr) first = &node;
      return index.is_constant() && index.value() >= 0 &&
             ops::integer_attribute(node.attributes, "dim") ==
                 ops::integer_attribute(first->attributes, "dim");
    });
    if (terms.empty()) return;
    for (const Value* term : terms)
      by_index.emplace(ops::integer_attribute(term->definition->attributes, "index"),
                       term->definition);
    const int64_t range = by_index.rbegin()->first - by_index.begin()->first + 1;
    if (by_index.size() < terms.size() || range > static_cast<int64_t>(terms.size())) {
      sum.terms = before;
      return;
    }
    for (const auto& [index, part] : by_index) sum.parts.push_back(part->inputs[0]);
    sum.part = by_index.begin()->second;
  }

  void keep(Sum sum) {
    const Node* root = sum.root;
    std::unordered_set<const Value*> stay(sum.terms.begin(), sum.terms.end());
    Values open = {root->inputs[0], root->inputs[1]};
    while (!open.empty()) {
      const Value* value = open.back();
      open.pop_back();
      if (stay.contains(value)) continue;
      dropped_.insert(value->definition);
      if (is_plain_sum(*value->definition))
        open.insert(open.end(), value->definition->inputs.begin(),
                    value->definition->inputs.begin() + 2);
    }
    sums_.emplace(root, std::move(sum));
  }

  std::vector<uint32_t> uses_;  // by Value::id
  std::unordered_map<const Node*, Sum> sums_;
  std::unordered_set<const Node*> dropped_;
};

/// Appends what takes the place of a sum.
class Emitter {
 public:
  explicit Emitter(graph::Rewriter& rewriter) : rewriter_(rewriter), builder_(rewriter.builder()) {}

  Value* emit(const Sum& sum) {
    builder_.set_span(sum.root->span);
    for (const Value* term : sum.terms) add(rewriter_[term]);
    if (!sum.lefts.empty()) {
      Value* left =
          op::transpose(builder_, {stack(sum.lefts)}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
      add(op::mm(builder_, {left, stack(sum.rights)}));
    }
    if (!sum.columns.empty()) {
      const Values columns = rewriter_[sum.columns];
      Value* left = builder_.append(op::cat, columns, {{"dim", int64_t{1}}})->output();
      const ops::Expression product(builder_, op::mm(builder_, {left, stack(sum.factors)}));
      add(ops::reshaped(product, sum.root->output()->type.shape));
    }
    if (!sum.matrices.empty())
      add(op::sum(builder_, {stack(sum.matrices)}, {{"dim", graph::Shape{graph::Dim(0)}}}));
    if (!sum.parts.empty()) add(whole(sum));
    return std::exchange(result_, nullptr);
  }

 private:
  void add(Value* term) {
    result_ = result_ == nullptr ? term : op::add(builder_, {result_, term});
  }

  Value* stack(const Values& matrices) {
    // In another block, the stack of an outer one would do as well; within one it is the same.
    Value*& stacked = stacked_[{&builder_.block(), matrices}];
    if (stacked == nullptr) stacked = put_side_by_side(builder_, rewriter_[matrices]);
    return stacked;
  }

  Value* whole(const Sum& sum) {
    const graph::Attributes& attributes = sum.part->attributes;
    const std::vector<Value*> parts = rewriter_[sum.parts];
    Value* joined = builder_.append(op::stack, parts, {{"dim", *attributes.find("dim")}})->output();
    const graph::Type& type = sum.root->output()->type;
    if (joined->type == type) return joined;
    const int64_t start = ops::integer_attribute(attributes, "index");
    return op::slice_backward(builder_, {joined},
                              {{"input_sizes", type.shape},
                               {"dim", *attributes.find("dim")},
                               {"start", start},
                               {"end", start + static_cast<int64_t>(parts.size())},
                               {"step", int64_t{1}}});
  }

  graph::Rewriter& rewriter_;
  graph::Builder& builder_;
  std::map<std::pair<const Block*, Values>, Value*> stacked_;
  Value* result_ = nullptr;
};

}  // namespace

graph::Graph sum_products(const graph::Graph& graph) {
  const Planner planner(graph);
  graph::Rewriter rewriter(graph);
  Emitter emitter(rewriter);
  rewriter.run([&](const Node& node) {
    if (const Sum* sum = planner.sum_at(node)) {
      rewriter.replace(node, {emitter.emit(*sum)});
      return true;
    }
    return planner.is_dropped(node);
  });
  return rewriter.finish();
}

}  // namespace janus::passes
