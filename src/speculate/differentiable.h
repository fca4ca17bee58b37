// Graphs whose results are differentiated by the caller (the user calls `backward()`): how results
// of a run get their grad_fn. torch/ implements this with its autograd node.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "execute/program/program.h"
#include "speculate/generated.h"

namespace janus::speculate {

/// The differentiable form of one generated graph.
///
///   auto differentiable = differentiation().prepare(generated);      // once
///   program = Program::compile(optimise(differentiable->take_forward()), library);
///   findings = differentiable->new_findings();
///   ... program->run(inputs, cells, all_results, rebound) ...        // each call: result_count()
///   differentiable->attach(inputs, program->cells(), cells, all_results, findings);
///
/// after which the first `generated.graph.results().size()` results carry their grad_fn; the rest
/// (saved values) may be dropped.
class Differentiable {
 public:
  virtual ~Differentiable() = default;
  /// The forward graph before optimisation: results of the original, then the saved values.
  virtual graph::Graph take_forward() = 0;
  /// Number of results of the forward graph.
  virtual size_t result_count() const = 0;
  /// Into how many programs the largest of the backward runs is divided; known once it was
  /// attached.
  virtual size_t backward_parts() const = 0;
  /// A fresh record of what a run must note beside its results; null: nothing.
  virtual std::shared_ptr<execute::Findings> new_findings() const = 0;
  /// Makes one autograd node for this run and sets it as grad_fn of the differentiable results.
  /// Must be called with the GIL held.
  virtual void attach(std::span<const execute::Slot> inputs,
                      std::span<const std::string> cell_names, std::span<const execute::Slot> cells,
                      std::span<execute::Slot> results,
                      const std::shared_ptr<execute::Findings>& findings) = 0;
};

class Differentiation {
 public:
  virtual ~Differentiation() = default;
  /// Precondition: generated.differentiable_results is not empty. May throw TypeError or
  /// InternalError where the graph can't be differentiated.
  virtual std::unique_ptr<Differentiable> prepare(const Generated& generated) = 0;
};

/// torch/ sets it once at start-up.
Differentiation& differentiation();
void set_differentiation(Differentiation* differentiation);

}  // namespace janus::speculate
