// One noted call as a node of a graph.
#pragma once

#include <optional>
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

/// Whether the argument holds sizes of tensors, or what follows from them.
bool is_size(const c10::Argument& argument);
/// The sizes among the arguments of a kind.
std::vector<int64_t> sizes_of(const CallKind& kind);

/// What calls that differ in sizes only differ in.
struct CallSizes {
  graph::Shape arguments;                           ///< as sizes_of
  std::vector<std::optional<graph::Type>> results;  ///< as kind.results; nothing: as they follow
  std::vector<graph::Type> seen;                    ///< one of each result
};

/// The same for calls of other sizes than the kind's.
std::vector<graph::Value*> append_call(graph::Builder& builder, const CallKind& kind,
                                       std::span<graph::Value* const> operands,
                                       std::span<graph::Value* const> numbers,
                                       const CallSizes& sizes);

/// Whether calls write to running statistics without saying so (OperatorRule::unsaid).
bool writes_unsaid(const CallKind& kind);

}  // namespace janus::lazy
