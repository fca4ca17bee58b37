// Builds a new graph from a finished one: the base of every pass.
//
//   Rewriter rewriter(old);
//   rewriter.run([&](const Node& node) {            // in program order, nested blocks included
//     if (!interesting(node)) return false;         // false: copy the node as it is
//     rewriter.replace(node, {some new value});     // replaces the old results
//     return true;
//   });
//   return rewriter.finish();
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"

namespace janus::graph {

class Rewriter {
 public:
  explicit Rewriter(const Graph& old_graph);

  /// Appends to the block of the new graph that corresponds to the current node.
  Builder& builder() { return builder_; }
  Graph& graph() { return graph_; }

  /// The new value for an old one.
  Value* operator[](const Value* old_value) const;
  std::vector<Value*> operator[](std::span<Value* const> old_values) const;
  bool has(const Value* old_value) const;

  /// Maps old_value to new_value.
  void set(const Value* old_value, Value* new_value);
  void replace(const Node& node, std::span<Value* const> new_outputs);
  void replace(const Node& node, std::initializer_list<Value*> new_outputs) {
    replace(node, std::span<Value* const>(new_outputs.begin(), new_outputs.size()));
  }

  /// Copies a node (with its blocks, through `visit` if running) and maps its results.
  Node* copy(const Node& node);

  /// Walks the old graph. `visit` returns true if it replaced or dropped the node.
  void run(const std::function<bool(const Node&)>& visit);
  /// The new graph, its results mapped. Call once.
  Graph finish();

 private:
  void run_block(const Block& from, Block& to);

  const Graph& old_;
  Graph graph_;
  Builder builder_;
  std::vector<Value*> map_;  // by old Value::id
  std::function<bool(const Node&)> visit_;
};

}  // namespace janus::graph
