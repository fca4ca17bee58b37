// How opaque operators keep an arbitrary ATen call in a node. See ops/structure.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace janus::ops {

/// A call of an ATen overload in terms of its schema. An argument of the schema that is in neither
/// list has its default.
struct OpaqueCall {
  std::string overload;  ///< "aten::cumsum", "aten::add.Tensor"
  /// Arguments that are values: a tensor or number, or the elements of a list, in the schema's
  /// order. An optional tensor that is None is left out; inside a list it is a `none` constant.
  struct Operand {
    std::string name;  ///< the schema's argument
    std::vector<graph::Value*> values;
    bool is_list = false;
  };
  std::vector<Operand> operands;
  /// All other arguments by the schema's name. Devices, layouts, memory formats as strings.
  graph::Attributes attributes;
  bool draws = false;  ///< takes numbers from the random generator (attribute _draws)
};

/// Appends the node; `result_types`: what the call gives (a list result: one for each element).
graph::Node* append_opaque(graph::Builder& builder, const OpaqueCall& call,
                           std::vector<graph::Type> result_types);

/// The call that an `opaque` node (or the innermost one that an `opaque_backward` node stands for)
/// makes; its operands' values are those of `inputs`.
OpaqueCall opaque_call(const graph::Attributes& attributes, std::span<graph::Value* const> inputs);

/// Whether it is an opaque call whose results never lie in an operand's memory.
bool owns_results(const graph::Node& node);

/// Which operands autograd watches in a call that records for its gradient (attribute _recorded);
/// empty: it does not record. A call that does gives a frame as its last result, which its
/// `opaque_backward` takes as last operand: the watched operands, then the results, as autograd
/// knows them.
std::vector<bool> recorded_operands(const graph::Attributes& attributes);

/// The layers of an `opaque_backward` node, the innermost first: which operands of that layer get a
/// gradient. Layer k+1's operands are layer k's followed by one gradient (or none) for each of its
/// results.
std::vector<std::vector<bool>> opaque_layers(const graph::Attributes& attributes);

}  // namespace janus::ops
