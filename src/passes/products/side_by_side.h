// Contiguous layout: tensors one after the other along their first dimension. Where they are parts
// of one tensor and lie so already, joining them moves no element.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"

namespace janus::passes {

using Values = std::vector<graph::Value*>;

/// Whether each part begins in the same tensor where the one before ends.
bool lie_together(std::span<graph::Value* const> parts);

/// The order in which they lie in one tensor, if they are parts of one; else that of definition.
std::vector<size_t> natural_order(std::span<graph::Value* const> parts);

/// The rows of matrices that have as many columns, or vectors as rows, as one matrix.
graph::Value* put_side_by_side(graph::Builder& builder, std::span<graph::Value* const> parts);

/// What that costs, in elements (graph/cost.h): nothing where they lie together.
int64_t cost_of_joining(std::span<graph::Value* const> parts);

/// The tensor of which the parts are all, or its slice, in that shape. They must lie together.
graph::Value* found_side_by_side(graph::Builder& builder, std::span<graph::Value* const> parts,
                                 const graph::Shape& shape);

/// The tensors that are, or will be, one after the other somewhere: in which order.
class Stacks {
 public:
  /// The order of the stack of just these, as positions among them.
  std::optional<std::vector<size_t>> find(const Values& parts) const;
  void add(const Values& parts);
  /// The same as the function; none where there is that stack.
  int64_t cost_of_joining(const Values& parts) const;

 private:
  static Values sorted(Values parts);
  std::map<Values, Values> orders_;
};

}  // namespace janus::passes
