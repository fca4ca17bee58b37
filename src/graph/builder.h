// Appends nodes to a block of a graph: infers result types, fills in default attributes, folds
// nothing.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/op.h"

namespace janus::graph {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(&graph), block_(&graph.body()) {}
  Builder(Graph& graph, Block& block) : graph_(&graph), block_(&block) {}

  Graph& graph() { return *graph_; }
  Block& block() { return *block_; }

  /// The source span of nodes built from now on.
  void set_span(SourceSpan span) { span_ = std::move(span); }
  const SourceSpan& span() const { return span_; }

  /// Adds an input to the graph's body.
  Value* input(Type type, std::string name);

  /// Appends `op(inputs) {attributes}`. Throws TypeError (from `infer`) if the operands do not fit.
  /// Attributes and trailing operands that are missing get the signature's default.
  Node* append(const OpDef& op, std::span<Value* const> inputs, Attributes attributes = {});
  Node* append(const OpDef& op, std::initializer_list<Value*> inputs, Attributes attributes = {}) {
    return append(op, std::span<Value* const>(inputs.begin(), inputs.size()),
                  std::move(attributes));
  }
  /// Appends a node whose blocks and result types the caller gives (control flow, opaque
  /// operators).
  Node* append_unchecked(const OpDef& op, std::span<Value* const> inputs, Attributes attributes,
                         std::vector<Type> result_types);

  /// Constants: a node of the operator `constant` (graph/constant.h).
  Value* constant(double value);
  Value* constant(int64_t value);
  Value* constant(bool value);
  Value* none();
  Value* constant_of(AttributeValue value);

 private:
  Graph* graph_;
  Block* block_;
  SourceSpan span_;
};

}  // namespace janus::graph
