// Copies single nodes, with their blocks, into a block of the same or of another graph. (Whole
// graphs are rebuilt with graph/rewriter.h.)
#pragma once

#include <unordered_map>

#include "graph/builder.h"

namespace janus::graph {

class Copier {
 public:
  /// What stands for a value without a copy: the value itself (`same_value`, in the same graph), or
  /// nothing, so that its use is an error.
  enum class Unknown { same_value, error };
  explicit Copier(Unknown unknown) : unknown_(unknown) {}

  /// From now on `copy` stands for `original`.
  void set(const Value* original, Value* copy) { copies_[original] = copy; }
  bool has(const Value* original) const { return copies_.contains(original); }
  Value* operator[](Value* original) const;
  /// The copy of a value; the same for a const graph.
  Value* copy_of(const Value* original) const;

  /// Appends a copy of `node` to the builder's block.
  Node* copy(const Node& node, Builder& builder);

 private:
  void copy_block(const Block& from, Block& to, Graph& graph);

  Unknown unknown_;
  std::unordered_map<const Value*, Value*> copies_;
};

}  // namespace janus::graph
