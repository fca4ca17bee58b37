// See map_reductions.h.
#include "passes/lowering/map_reductions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "graph/rewriter.h"
#include "ops/attributes.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/reindex.h"
#include "passes/analysis/unobservable_layouts.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Shape;
using graph::Value;
using ops::apply;
using ops::Expression;

/// The dimension of the operand that each index of the result is; nullopt if one is another number.
std::optional<std::vector<int64_t>> kept_dims(const Node& reduce) {
  const Shape &from = reduce.inputs[0]->type.shape, &to = reduce.output()->type.shape;
  const ops::IndexMap map = ops::index_map(reduce.attributes, from.size());
  std::vector<int64_t> kept;
  for (size_t k = 0; k < to.size(); ++k) {
    size_t dim = 0;
    while (dim < from.size() && !(map.is_same(k, dim) && from[dim] == to[k])) ++dim;
    if (dim == from.size() || std::ranges::find(kept, dim) != kept.end()) return std::nullopt;
    kept.push_back(static_cast<int64_t>(dim));
  }
  return kept;
}

/// The operand's other dimensions; none if one may be empty, of which there is no extremum.
std::vector<int64_t> combined_dims(const Shape& from, const std::vector<int64_t>& kept) {
  std::vector<int64_t> dims;
  for (size_t d = 0; d < from.size(); ++d) {
    if (std::ranges::find(kept, d) != kept.end()) continue;
    if (from[d].lower_bound().value_or(0) < 1) return {};
    dims.push_back(static_cast<int64_t>(d));
  }
  return dims;
}

/// torch's reduction over those dimensions; null where it has none.
Value* reduced(graph::Builder& builder, const std::string& reduce, Value* operand,
               const std::vector<int64_t>& dims) {
  const Expression x(builder, operand);
  const Shape along(dims.begin(), dims.end());
  const bool is_bool = x.dtype() == graph::DType::b1;
  if (reduce == "any") return apply(op::any, {{"dim", along}}, apply(op::ne, x, 0));
  if (reduce == "all") return apply(op::all, {{"dim", along}}, apply(op::ne, x, 0));
  if (reduce == "amax") return apply(op::amax, {{"dim", along}}, x);
  if (reduce == "amin") return apply(op::amin, {{"dim", along}}, x);
  if (is_bool) return nullptr;
  if (reduce == "sum") return apply(op::sum, {{"dim", along}, {"dtype", x.dtype()}}, x);
  const graph::OpDef& position = reduce == "argmax" ? op::argmax : op::argmin;
  if (dims.size() == 1) return apply(position, {{"dim", dims.front()}}, x);
  return dims.size() == static_cast<size_t>(x.rank()) ? apply(position, x).value() : nullptr;
}

/// Null unless whole dimensions are combined.
Value* as_reduction(graph::Builder& builder, const Node& node, Value* operand) {
  const auto kept = kept_dims(node);
  if (!kept) return nullptr;
  const auto dims = combined_dims(node.inputs[0]->type.shape, *kept);
  if (dims.empty()) return nullptr;
  Value* result = reduced(builder, ops::text_attribute(node.attributes, "reduce"), operand, dims);
  if (result == nullptr) return nullptr;
  std::vector<int64_t> order;  // of the result's dimensions, as they are left
  for (const int64_t dim : *kept)
    order.push_back(std::ranges::count_if(*kept, [&](int64_t other) { return other < dim; }));
  if (std::ranges::is_sorted(order)) return result;
  return ops::permuted({builder, result}, order);
}

}  // namespace

graph::Graph map_reductions(const graph::Graph& graph) {
  const std::vector<bool> unobservable = find_unobservable(graph);
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    if (node.op != &op::reindex_reduce) return false;
    graph::Builder& builder = rewriter.builder();
    Value* result = as_reduction(builder, node, rewriter[node.inputs[0]]);
    if (result == nullptr) return false;
    // Where it lies, the library decides by its operand.
    const bool is_ordered = result->type.rank() < 2 || unobservable[node.output()->id];
    if (!is_ordered) result = apply(op::contiguous, Expression(builder, result));
    rewriter.replace(node, {result});
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
