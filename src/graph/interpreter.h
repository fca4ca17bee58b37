// The reference interpreter: runs a graph node by node over dense tensors, by the semantics of
// docs/ir.md, without regard to speed. Tests of passes and fuzzing compare graphs by it.
//
// It implements structure (constants, state, guards, control flow, functions, objects, fused
// blocks) and elementwise operators by their scalar programs. Other operators come from the
// Reference (ops/reference.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/datum.h"
#include "graph/graph.h"

namespace janus::graph {

/// One call of an operator that has no scalar program.
struct ReferenceCall {
  const Node& node;
  std::span<const Datum> inputs;
  /// The value of a dimension in this run.
  std::function<int64_t(const Dim&)> evaluate;

  const DenseTensor& tensor(size_t input) const;
  /// An operand that is a number, as a double.
  double number(size_t input) const;
  /// A tensor of zeros of the type of result `index`.
  DenseTensor result(size_t index = 0) const;
};

struct Reference {
  using Function = std::vector<Datum> (*)(const ReferenceCall&);
  std::map<std::string_view, Function> functions;  ///< by operator name
  /// The dtype in which an elementwise node with a tensor result computes.
  DType (*compute_dtype)(const Node&) = nullptr;
};

struct Outcome {
  std::vector<Datum> results;
  std::map<std::string, Datum> committed, rebound;  ///< by cell
  std::optional<int64_t> failed_guard;              ///< its id; nothing else is filled then
  std::optional<std::string> failure;               ///< of another kind: overflow
  bool ok() const { return !failed_guard && !failure; }
};

/// `objects`: those that the graph knows by number. InternalError if the inputs do not fit the
/// graph or an operator is not known.
Outcome interpret(const Graph& graph, std::span<const Datum> inputs,
                  const std::map<std::string, Datum>& cells, const Reference& reference,
                  std::span<const ObjectReference> objects = {});

}  // namespace janus::graph
