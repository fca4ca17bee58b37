// torch.autocast for the CPU, as the interpreted program has switched it on: the operands of an
// operator are cast as torch's lists say, and nothing is cast within it.
//
// The classes of torch.amp are interpreted as any others; only the state that they set is known
// here.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// What becomes of the floating operands of an operator.
enum class CastPolicy {
  none,    ///< it takes them as they are
  lower,   ///< they are cast to the type of the context
  full,    ///< to float32
  widest,  ///< to float32 if one of them has that type, else to the type of the context
};

/// Torch's lists, by the names of the operators without overloads.
struct CastRule {
  std::string_view name;
  CastPolicy policy;
};
std::span<const CastRule> cast_rules();

/// The arguments as the operator gets them within a context. `name` is "linear" or "conv2d" for
/// operators of the graph and of ATen alike; refuses those of which it is not known what is cast
/// within them.
CallArguments with_casts(Interpreter& interpreter, std::string_view name, bool is_composite,
                         const CallArguments& arguments);

/// A norm of half precision with weights or statistics of float32 computes in float32: its input
/// becomes that, and the result is to have the type that is given back.
std::optional<graph::DType> widen_norm(Interpreter& interpreter, std::string_view name,
                                       CallArguments& arguments);
Value cast_to(Interpreter& interpreter, const Value& tensor, graph::DType dtype);

/// Refuses what eager computes with autocast in a way that is not followed.
void refuse_within_autocast(Interpreter& interpreter, std::string_view what);

}  // namespace janus::frontend
