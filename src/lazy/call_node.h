// One noted call as a node of a graph.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"
#include "lazy/event.h"

namespace janus::lazy {

/// Why a call can't be in a graph.
class NotInGraph : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Of the tensor with that geometry. Throws NotInGraph.
graph::Type type_of(const Geometry& geometry);

/// Values of the call's results, those of written operands included (their new values); null for
/// undefined ones. Behind them, new values of operands that are written without saying so
/// (OperatorRule::unsaid). `operands` as kind.places, `numbers` as kind.numbers. Throws NotInGraph.
std::vector<graph::Value*> append_call(graph::Builder& builder, const CallKind& kind,
                                       std::span<graph::Value* const> operands,
                                       std::span<graph::Value* const> numbers);

}  // namespace janus::lazy
