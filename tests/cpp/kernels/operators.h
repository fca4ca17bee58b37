// Operators of the tests' own: one for each thing that a scalar program can say.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"
#include "graph/op.h"

namespace janus::kernels::testing_ops {

using graph::DType;
using graph::OpDef;

/// Binary arithmetic in the promoted type: add, sub, mul; div gives floats.
extern const OpDef add, sub, mul, div, maximum;
extern const OpDef neg, sqrt, floor, half_of, remainder_by_7;
/// Comparisons: b1.
extern const OpDef lt, eq, ne;
extern const OpDef where;  ///< condition (raw), a, b
extern const OpDef bit_and, bit_or, bit_xor;
extern const OpDef to;  ///< to the output's dtype
extern const OpDef invert_bool;
/// Not for kernels: no scalar program; a function that nobody has; division by an operand.
extern const OpDef opaque, unknown_function, integer_divide;
/// Calls the function that the attribute `function` names.
extern const OpDef call1, call2;

/// A graph with one `fused` node in the making.
class Fused {
 public:
  Fused();
  graph::Value* tensor(DType dtype, graph::Shape shape);
  graph::Value* number(graph::Type::Kind kind);
  graph::Value* constant(graph::AttributeValue value);
  /// The result has the broadcast shape; dtype as given.
  graph::Value* apply(const OpDef& op, std::span<graph::Value* const> inputs, DType dtype,
                      graph::Attributes attributes = {});
  graph::Value* apply(const OpDef& op, std::initializer_list<graph::Value*> inputs, DType dtype,
                      graph::Attributes attributes = {}) {
    return apply(op, std::span(inputs.begin(), inputs.size()), dtype, std::move(attributes));
  }
  const graph::Node& finish(std::vector<graph::Value*> results);

  const graph::Block& block() const { return *node_->blocks.front(); }
  const graph::Node& node() const { return *node_; }
  /// The node that defined a value.
  static const graph::Node& node_of(const graph::Value* value) { return *value->definition; }

 private:
  graph::Graph graph_{"test"};
  graph::Node* node_;
};

}  // namespace janus::kernels::testing_ops
