// The functions of the graph that were made of recursive Python functions, in the order in which
// they were begun. A function that rests on a result that turned out to be wrong is taken back.
#pragma once

#include <memory>
#include <vector>

#include "frontend/core/graph_writer.h"
#include "frontend/recursion/recursive_function.h"

namespace janus::frontend {

class RecursiveFunctions {
 public:
  explicit RecursiveFunctions(GraphWriter& writer) : writer_(writer) {}

  size_t size() const { return functions_.size(); }
  auto begin() const { return functions_.begin(); }
  auto end() const { return functions_.end(); }
  /// Whether one of them is still being made.
  bool is_building() const;
  RecursiveFunction& add(std::unique_ptr<RecursiveFunction> function);
  /// Takes back the functions after the first `count`, and their nodes.
  void forget_after(size_t count);
  /// Takes back the functions after the first `count`, of which none has a node yet.
  void drop_after(size_t count) { functions_.resize(count); }

 private:
  GraphWriter& writer_;
  std::vector<std::unique_ptr<RecursiveFunction>> functions_;
};

}  // namespace janus::frontend
