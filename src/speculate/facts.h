// Facts: what the profiler saw at each syntax node, as points of a lattice.
//
//   nothing seen < one value < one type and shape < type and shape with varying dimensions < type <
//   anything
//
// A fact only ever becomes more general, so the number of graphs of one function is bounded by the
// lattice's height.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/type.h"
#include "python/object.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {

/// What is known of the values that one place (a node, an argument, a path) gave.
class ValueFact {
 public:
  enum class Level { nothing, value, shape, varying_shape, type, anything };

  /// Joins with one more observation.
  void see(PyObject* object);
  Level level() const { return level_; }
  /// The class of all values seen; null above `type`. Strong reference (classes of the user's
  /// program).
  PyObject* type() const { return type_.get(); }
  /// The one value seen; null unless level() == value. Numbers, strings, None, functions, classes
  /// are kept; other objects only by weak reference, null once dead.
  PyObject* value() const;
  /// For tensors at level shape or varying_shape: dtype and dims; -1 for a dimension that varied.
  bool is_tensor() const { return is_tensor_; }
  graph::DType dtype() const { return dtype_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  std::string describe() const;

 private:
  Level level_ = Level::nothing;
  python::Object type_, value_;
  bool value_is_weak_ = false;
  bool is_tensor_ = false;
  graph::DType dtype_ = graph::DType::f32;
  std::vector<int64_t> sizes_;
};

/// Everything seen at one syntax node. Only what applies to the node's kind is filled.
struct NodeFact {
  uint64_t taken = 0, not_taken = 0;          ///< tests
  int64_t least_trips = -1, most_trips = -1;  ///< loops; -1: never ran
  ValueFact value;   ///< results of calls, attribute and subscript reads, non-local names
  ValueFact callee;  ///< calls
};

/// Facts of one function (tree), indexed by Expression::fact / Statement::fact.
struct Facts {
  std::vector<NodeFact> nodes;
  /// By source path from the entry (Source::describe()): values of arguments and of what is read
  /// from them. Filled by the dispatcher when an assumption about the path failed: joins force
  /// relaxation.
  std::map<std::string, ValueFact, std::less<>> paths;
  /// Graph tests (guard ids are fact numbers) that went the other way count here too, in nodes.
  uint64_t runs = 0;
};

/// All facts of the process, by code object of the original function (or statements).
class ProfileStore {
 public:
  /// The facts of the function with that code object; made (empty) at first use.
  Facts& of(PyObject* code, size_t node_count);
  Facts* find(PyObject* code);

 private:
  std::map<PyObject*, std::unique_ptr<Facts>> facts_;  // keys are kept alive
  std::vector<python::Object> alive_;
};

ProfileStore& profiles();

}  // namespace janus::speculate
