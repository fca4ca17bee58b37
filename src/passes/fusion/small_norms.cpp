// See small_norms.h.
#include "passes/fusion/small_norms.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/policy.h"
#include "graph/constant.h"
#include "graph/rewriter.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "passes/fusion/grouping.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Value;
using ops::apply;
using ops::Expression;

bool is_length(const Node& node) {
  if (node.op != &op::vector_norm || !has_few_elements(node)) return false;
  const graph::DType dtype = node.inputs[0]->type.dtype;
  const bool computed = dtype == graph::DType::f32 || dtype == graph::DType::f64;
  return computed && node.output()->type.dtype == dtype &&
         graph::constant_number(node.inputs[1]) == 2.0;
}

/// The numbers of which a stack is made, if it is.
std::vector<Value*> stacked_numbers(const Value& stack) {
  const Node* node = stack.definition;
  if (node == nullptr || node->op != &op::stack || node->inputs.size() > policy::kMostNumbersSummed)
    return {};
  const bool are_numbers =
      std::ranges::all_of(node->inputs, [](const Value* input) { return input->type.rank() == 0; });
  if (!are_numbers) return {};
  return {node->inputs.begin(), node->inputs.end()};
}

Expression sum_of_squares(graph::Rewriter& rewriter, const Node& norm) {
  graph::Builder& builder = rewriter.builder();
  if (norm.output()->type.rank() == 0)
    if (const auto numbers = stacked_numbers(*norm.inputs[0]); !numbers.empty()) {
      std::optional<Expression> sum;
      for (Value* number : numbers) {
        const Expression x(builder, rewriter[number]);
        sum = sum ? *sum + x * x : x * x;
      }
      return *sum;
    }
  const Expression x(builder, rewriter[norm.inputs[0]]);
  return apply(
      op::sum,
      {{"dim", *norm.attributes.find("dim")}, {"keepdim", *norm.attributes.find("keepdim")}},
      x * x);
}

}  // namespace

graph::Graph small_norms(const graph::Graph& graph, const CanFuse& can_fuse) {
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    if (!is_length(node)) return false;
    rewriter.builder().set_span(node.span);
    const Expression squares = sum_of_squares(rewriter, node);
    if (!can_fuse(*squares.value()->definition)) return false;
    rewriter.replace(node, {apply(op::sqrt, squares)});
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
