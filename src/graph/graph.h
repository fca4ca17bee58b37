// The graph: a typed program in static single assignment form with nested blocks.
//
// Semantics in short (docs/ir.md has the whole):
// - A block is a list of nodes. A node applies an operator to values and defines new values. A
// value
//   is visible behind its definition, in its block and in the blocks nested in it.
// - Control flow is operators with blocks (`if`, `while`, `fused`), never marker nodes. `if` and
//   `while` may use outer values directly.
// - Tensors are values: no operator changes one. State is dataflow: `state` reads a cell as it was
//   when the call began, `commit` and `rebind` say what a cell holds after the call. They take
//   effect together, and only if every `guard` held.
// - An operator's traits say what else it does (draw random numbers, read the heap, ...). Nodes
// with
//   the same effect keep their order; all others are ordered by data alone.
// - Integers do not wrap: an i64 operation that overflows fails the run, and the call is repeated
// in
//   Python.
//
// A finished graph is not edited: a pass builds a new one with Rewriter (graph/rewriter.h).
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/attribute.h"
#include "graph/source_span.h"
#include "graph/type.h"

namespace janus::graph {

struct OpDef;
struct Node;
struct Block;

struct Value {
  Type type;
  Node* definition = nullptr;  ///< null for a block's parameter
  Block* owner = nullptr;      ///< the block whose parameter this is; null for a node's result
  uint32_t index = 0;          ///< position among the node's results or the block's parameters
  uint32_t id = 0;             ///< dense and unique within the graph: for side tables
  std::string name;            ///< for printing; the printer makes it unique
};

struct Block {
  Node* parent = nullptr;  ///< null for a graph's body
  std::vector<Value*> parameters;
  std::vector<Node*> nodes;
  std::vector<Value*> results;  ///< what `yield` (in the body: `return`) gives
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value*> inputs;
  std::vector<Value*> outputs;
  Attributes attributes;
  std::vector<std::unique_ptr<Block>> blocks;
  SourceSpan span;
  Block* parent = nullptr;

  Value* output() const { return outputs.front(); }
  /// A new nested block behind the existing ones.
  Block& add_block();
};

/// One function. Owns all its nodes and values; they die with it.
class Graph {
 public:
  explicit Graph(std::string name) : name_(std::move(name)) {}
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  const std::string& name() const { return name_; }
  Block& body() { return *body_; }
  const Block& body() const { return *body_; }
  std::span<Value* const> inputs() const { return body_->parameters; }
  std::span<Value* const> results() const { return body_->results; }
  /// One more than the largest Value::id: the size of a side table.
  size_t value_count() const { return values_.size(); }

  /// Low-level construction, for Builder, Rewriter and the parser; no checks.
  Value* new_value(Type type, std::string name = {});
  Value* new_parameter(Block& block, Type type, std::string name = {});
  Node* new_node(const OpDef& op);
  Value* new_output(Node& node, Type type, std::string name = {});
  void append(Block& block, Node* node);

 private:
  std::string name_;
  std::unique_ptr<Block> body_ = std::make_unique<Block>();
  std::deque<std::unique_ptr<Value>> values_;
  std::deque<std::unique_ptr<Node>> nodes_;
};

/// Calls `visit` for each node of `block` and of the blocks nested in it, in program order, a node
/// before its blocks.
template <class Visit>
void for_each_node(const Block& block, Visit&& visit) {
  for (Node* node : block.nodes) {
    visit(*node);
    for (const auto& nested : node->blocks) for_each_node(*nested, visit);
  }
}

}  // namespace janus::graph
