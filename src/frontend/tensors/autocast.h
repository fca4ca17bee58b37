// torch.autocast for the CPU, as the interpreted program has switched it on: the operands of an
// operator are cast as torch's lists say, and nothing is cast within it.
//
// The classes of torch.amp are interpreted as any others; only the state that they set is known
// here.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// The operators whose operands are cast: those of the graph (OpDef::autocast), and those of ATen
/// that are no operators of the graph, by their names without overloads.
std::vector<std::string_view> cast_operators();

/// The arguments as the operator gets them within a context; refuses operators of which it is not
/// known what is cast within them. The second is for ATen's operators: "linear", "conv2d".
CallArguments with_casts(Interpreter& interpreter, const graph::OpDef& op,
                         const CallArguments& arguments);
CallArguments with_casts(Interpreter& interpreter, std::string_view name, bool is_composite,
                         const CallArguments& arguments);

/// A norm of half precision with weights or statistics of float32 computes in float32: its input
/// becomes that, and the result is to have the type that is given back.
std::optional<graph::DType> widen_norm(Interpreter& interpreter, const graph::OpDef& op,
                                       CallArguments& arguments);
Value cast_to(Interpreter& interpreter, const Value& tensor, graph::DType dtype);

/// Refuses what eager computes with autocast in a way that is not followed.
void refuse_within_autocast(Interpreter& interpreter, std::string_view what);

}  // namespace janus::frontend
