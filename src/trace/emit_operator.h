// How an operator of a trace becomes a node of a graph.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>

#include "graph/builder.h"
#include "trace/nodes.h"

namespace janus::trace {

/// Why no graph can be made.
struct Refusal {
  std::string reason;
};

/// For callers that know more about operators than their names, such as how sizes of results follow
/// from those of operands.
class OperatorEmitter {
 public:
  virtual ~OperatorEmitter() = default;
  /// Appends what computes the operator and gives its results; nothing to leave it to this room.
  /// `sizes` are the operator's attributes that may vary, `results` the types that traces showed.
  /// What it gives must fit them. Throws Refusal.
  virtual std::optional<std::vector<graph::Value*>> emit(graph::Builder& builder,
                                                         const Operator& op,
                                                         const graph::Shape& sizes,
                                                         std::span<graph::Value* const> operands,
                                                         std::span<const Pattern> results) = 0;
};

/// Appends the operator: as the block that has its overload (ops/list.h) if that gives results of
/// these types, else as an `opaque` node.
std::variant<std::vector<graph::Value*>, Refusal> emit_operator(
    graph::Builder& builder, const Operator& op, std::span<graph::Value* const> operands,
    std::span<const Pattern> results);

/// Whether values of the type can be what traces showed. Where they showed one size, the type may
/// have an expression.
bool can_be(const graph::Type& type, const Pattern& seen);

}  // namespace janus::trace
