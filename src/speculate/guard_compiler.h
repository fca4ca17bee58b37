// Compilation of assumptions into a tree of guards. Every path is walked once, and the checks of an
// object stand together.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "speculate/generated.h"
#include "speculate/guard_tree.h"

namespace janus::speculate {

/// Builds the tree. It is destroyed afterwards, with all its strong references to the user's
/// objects.
class GuardCompiler {
 public:
  GuardCompiler(GuardTree& tree, PyObject* on_death) : tree_(tree), on_death_(on_death) {}

  /// The step of the access path, made at its first use.
  uint32_t step(const Source* source);
  void add(const Assumption& assumption);
  void add(const DimAssumption& assumption);
  /// Sorts the checks.
  void finish();

 private:
  size_t symbol(const std::string& name);
  TensorCheck tensor_check(const TensorPattern& pattern, const Assumption& assumption);
  ElementCheck element_check(const ElementPattern& pattern, const Assumption& assumption);
  bool is_new(const Assumption& assumption);

  GuardTree& tree_;
  PyObject* on_death_;
  std::unordered_map<const Source*, uint32_t> steps_;
  std::unordered_map<const Source*, std::vector<const Assumption*>> seen_;
};

}  // namespace janus::speculate
