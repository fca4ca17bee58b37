// The reference interpreter: runs a graph node by node over dense tensors, by the semantics of
// docs/ir.md, without regard to speed. Tests of passes and fuzzing compare graphs by it.
//
// It implements what belongs to the graph as a whole (constants, cells, guards, dimensions,
// functions) and elementwise operators by their scalar programs. Other operators come from the
// Reference (ops/reference.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/datum.h"
#include "graph/graph.h"

namespace janus::graph {

/// The node's assumption does not hold: the run ends there.
struct GuardFailure {
  int64_t id;
};

/// What operators ask the run for.
class ReferenceRun {
 public:
  virtual ~ReferenceRun() = default;
  /// The value of a dimension in this run.
  virtual int64_t evaluate(const Dim& dim) const = 0;
  std::vector<int64_t> sizes_of(const Type& type) const;
  virtual void set_symbol(const std::string& name, int64_t value) = 0;
  virtual bool fits(const Type& type, const Datum& datum) const = 0;
  /// The results of a block with these parameters.
  virtual std::vector<Datum> run(const Block& block, std::vector<Datum> arguments) = 0;
  /// An object that the graph knows by number.
  virtual const ObjectReference& known_object(int64_t number) const = 0;
};

/// One call of an operator that has no scalar program.
struct ReferenceCall {
  const Node& node;
  std::span<const Datum> inputs;
  ReferenceRun& run;

  int64_t evaluate(const Dim& dim) const { return run.evaluate(dim); }
  const DenseTensor& tensor(size_t input) const;
  /// An operand that is a number, as a double.
  double number(size_t input) const;
  /// A tensor of zeros of the type of result `index`.
  DenseTensor result(size_t index = 0) const;
};

struct Reference {
  using Function = std::vector<Datum> (*)(const ReferenceCall&);
  using Functions = std::unordered_map<const OpDef*, Function>;
  Functions functions;
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
