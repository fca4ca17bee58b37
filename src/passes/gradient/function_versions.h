// Forward and backward versions of functions, made where a gradient comes to a call.
//
//   %y, %f = call %x {callee="f.forward"} : f32[2], frame
//   %dx, %dw1 = call %f, %dy, %dw0 {callee="f.backward"} : f32[2], f32[2,2]
//
// The forward version is a copy of the function that gives one more result, a frame with what the
// backward version needs. The backward version takes that, the gradients of the function's results
// and, for each value that the function uses from outside, the sum of its gradients so far; it
// gives the gradients of the parameters and the sums. Functions that call each other get versions
// together; all of them carry the same sums.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "passes/gradient/gradient_sums.h"

namespace janus::passes {

/// One function's versions.
struct FunctionVersion {
  graph::Node* original = nullptr;
  graph::Node* forward = nullptr;
  graph::Node* backward = nullptr;
  std::vector<size_t> parameters;  ///< whose gradients the backward version gives
  std::vector<size_t> results;     ///< whose gradients it takes
  /// The values from outside whose sums it takes and gives; the same for all that were made
  /// together.
  std::vector<graph::Value*> captured;
};

/// Those of one run of differentiation.
class FunctionVersions {
 public:
  /// The gradients of what a call uses, from those of its results.
  void differentiate(graph::Node& call, GradientSums& sums, BlockDifferentiator& blocks);

 private:
  friend class VersionMaker;
  /// The versions of which the call already runs the forward one; null if there are none.
  const FunctionVersion* running_in(const graph::Node& call) const;
  const FunctionVersion* find(const graph::Node& function, const std::vector<size_t>& parameters,
                              const std::vector<size_t>& results,
                              const std::vector<graph::Value*>& captured) const;
  void call_backward(graph::Node& call, const FunctionVersion& version, GradientSums& sums) const;

  std::vector<std::unique_ptr<FunctionVersion>> versions_;
};

}  // namespace janus::passes
