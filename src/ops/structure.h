// How opaque operators store an arbitrary ATen call in a node. See ops/structure.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace janus::ops {

/// A call of an ATen overload, by the names of its schema. An argument that is neither an operand
/// nor an attribute has its default.
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
  bool draws = false;  ///< draws from the random generator (attribute _draws)
};

/// Appends the node. `result_types`: the results of the call; of a list result, its elements.
graph::Node* append_opaque(graph::Builder& builder, const OpaqueCall& call,
                           std::vector<graph::Type> result_types);

/// The call of an `opaque` node, or the innermost call of an `opaque_backward` node, with the
/// values of `inputs` as operands.
OpaqueCall opaque_call(const graph::Attributes& attributes, std::span<graph::Value* const> inputs);

/// Whether the overload is torch's own, and not of the program or a library.
bool is_torchs_own(std::string_view overload);

/// Whether the node runs an overload that is not torch's own.
bool runs_foreign_code(const graph::Node& node);

/// Whether the node is an opaque call whose results never share an operand's memory.
bool owns_results(const graph::Node& node);

/// Which operands are differentiated in a call that records autograd's graph (attribute _recorded);
/// empty if it does not record. A recording call has a frame as its last result, and its
/// `opaque_backward` has it as last operand: those operands, then the results, as autograd knows
/// them.
std::vector<bool> recorded_operands(const graph::Attributes& attributes);

/// The layers of an `opaque_backward` node (a gradient of a gradient has several), innermost first:
/// which operands of the layer get a gradient. The operands of layer k+1 are those of layer k,
/// followed by one gradient (or none) for each of its results.
std::vector<std::vector<bool>> opaque_layers(const graph::Attributes& attributes);

}  // namespace janus::ops
