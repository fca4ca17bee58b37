// See batching_rules.h. The rules themselves are in the blocks of the operators (OpDef::rows).
#include "passes/batching/batching_rules.h"

#include <algorithm>

#include "graph/op.h"
#include "ops/row_rules.h"

namespace janus::passes {

using graph::Builder;
using graph::Dim;
using graph::DType;
using graph::Node;
using graph::Shape;
using graph::Type;
using graph::Value;

Type rows_of(const Type& type, const Dim& rows) {
  Shape shape = type.shape;
  shape.insert(shape.begin(), rows);
  switch (type.kind) {
    case Type::Kind::i64:
      return Type::tensor(DType::i64, std::move(shape));
    case Type::Kind::f64:
      return Type::tensor(DType::f64, std::move(shape));
    case Type::Kind::boolean:
      return Type::tensor(DType::b1, std::move(shape));
    default:
      return Type::tensor(type.dtype, std::move(shape));
  }
}

namespace {

bool is_never_empty(const Type& type) {
  return std::none_of(type.shape.begin(), type.shape.end(),
                      [](const Dim& dim) { return dim.is(0); });
}

}  // namespace

std::optional<std::vector<Value*>> append_for_rows(Builder& builder, const Node& node,
                                                   std::span<Value* const> inputs,
                                                   const std::vector<bool>& stacked,
                                                   const Dim& rows) {
  // A size of -1 says nothing beside one of 0.
  for (const Value* input : node.inputs)
    if (!is_never_empty(input->type)) return std::nullopt;
  const auto rule = node.op->rows != nullptr                 ? node.op->rows
                    : node.op->is(graph::Trait::elementwise) ? ops::for_rows::elementwise
                                                             : nullptr;
  if (rule == nullptr) return std::nullopt;
  builder.set_span(node.span);
  const std::vector<Value*> results = rule({builder, node, inputs, stacked});
  if (results.size() != node.outputs.size()) return std::nullopt;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i]->type != rows_of(node.outputs[i]->type, rows)) return std::nullopt;
  return results;
}

std::optional<size_t> added_to(const Node& node) {
  if (node.op->adds == nullptr || !node.op->adds(node)) return std::nullopt;
  return 0;
}

std::optional<Value*> append_sum_of_rows(Builder& builder, const Node& node,
                                         std::span<Value* const> inputs,
                                         const std::vector<bool>& stacked) {
  builder.set_span(node.span);
  for (const Value* input : node.inputs)
    if (!is_never_empty(input->type)) return std::nullopt;
  if (node.op->sum_of_rows == nullptr) return std::nullopt;
  Value* sum = node.op->sum_of_rows({builder, node, inputs, stacked});
  return sum == nullptr ? std::nullopt : std::optional(sum);
}

}  // namespace janus::passes
