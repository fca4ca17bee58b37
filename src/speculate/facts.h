// Facts: what the profiler saw at each syntax node, as points of a lattice.
//
//   nothing seen < one value < one type and shape < type and shape with varying dimensions < type <
//   anything
//
// A fact only ever becomes more general, so the number of graphs of one function is bounded by the
// lattice's height.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/type.h"
#include "python/object.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {

/// What is known of the values that one place (a node, an argument, a path) gave.
///
/// Tensors start at `shape`, whichever object they are; two shapes of one rank and dtype join to
/// `varying_shape`, everything else about two tensors to `type`. A size of 0 or 1 is no ordinary
/// size (broadcasting depends on it), so a graph whose dimension is named cannot serve it. A
/// dimension that was 1 in one call and 8 in another is -1 in `sizes` as any that varied;
/// `least_sizes` remembers the 1 (or 0). The generator names a dimension whose least size is at
/// least 2; for others it specialises on the size at hand, and the number of such graphs stays
/// bounded, since those sizes can only be 0, 1 and one named.
///
/// Other objects start at `value`. It is kept for numbers (compared with their class, floats by
/// their bits), strings, bytes, None and the like, and tuples of such; of every other object there
/// is a weak reference where its class has one (functions and classes too: facts keep nothing of
/// the program alive but the classes of values), else the fact starts at `type`.
class ValueFact {
 public:
  enum class Level { nothing, value, shape, varying_shape, type, anything };

  /// Joins with one more observation.
  void see(PyObject* object);
  Level level() const { return level_; }
  /// The class of all values seen; null above `type`. Strong reference (classes of the user's
  /// program).
  PyObject* type() const { return type_.get(); }
  /// The one value seen (borrowed); null unless level() == value, and once a weakly kept one died.
  PyObject* value() const;
  /// For tensors at level shape or varying_shape: dtype and dims; -1 for a dimension that varied.
  bool is_tensor() const { return is_tensor_; }
  graph::DType dtype() const { return dtype_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  /// Of tensors: whether the size of that dimension varied.
  bool varies(size_t dimension) const {
    if (level_ != Level::varying_shape) return level_ >= Level::type;
    return dimension < sizes_.size() && sizes_[dimension] < 0;
  }
  /// The smallest size seen of each dimension; as long as sizes().
  const std::vector<int64_t>& least_sizes() const { return least_sizes_; }
  /// Notes which tensor it is in the call of that number, and of what sizes.
  void note_tensor(uint64_t call, PyObject* object);
  /// Whether dimensions of two values were of different sizes in a call that both remember.
  static bool have_differed(const ValueFact& a, size_t dimension, const ValueFact& b,
                            size_t other_dimension);
  /// Whether two values were different tensors in a call that both remember.
  static bool were_different(const ValueFact& a, const ValueFact& b);
  std::string describe() const;
  /// The classes of the values seen, also at level `anything`; empty if there were too many.
  const std::vector<python::Object>& classes() const { return classes_; }

 private:
  void see_class(PyObject* object);
  void start(PyObject* object);
  bool start_tensor(PyObject* object);
  bool join_tensor(PyObject* object);
  bool is_same_value(PyObject* object) const;
  void rise(Level level);
  std::string type_text() const;

  Level level_ = Level::nothing;
  python::Object type_, value_;
  bool value_is_weak_ = false;
  bool is_tensor_ = false;
  graph::DType dtype_ = graph::DType::f32;
  std::vector<int64_t> sizes_, least_sizes_;
  struct TensorInCall {
    uint64_t call = 0;
    const PyObject* identity = nullptr;  ///< never looked at: it may be gone
    std::vector<int64_t> sizes;
  };
  std::deque<TensorInCall> latest_;
  std::vector<python::Object> classes_;
  bool too_many_classes_ = false;
};

/// Everything seen at one syntax node. Only what applies to the node's kind is filled.
struct NodeFact {
  /// Tests: how often the truth of an expression decided. At the expression whose truth was taken
  /// (an `if` of a comprehension, an operand of `and`/`or`/`not`, a guard of `case`); for If,
  /// While, IfExp and Assert also at the node itself. The last operand of `and`/`or` counts only
  /// where the whole is a test.
  uint64_t taken = 0, not_taken = 0;
  /// Loops: at For and While, for For and comprehensions also at the expression iterated over.
  /// Iterations begun until the loop ended in whichever way; -1: never ran.
  int64_t least_trips = -1, most_trips = -1;
  ValueFact value;  ///< results of calls, attribute and subscript reads, non-local names
  /// Loops, at For and the expression iterated over: what it gave.
  ValueFact element;
  /// Calls: what was called. A bound method counts as its function (of a builtin method: the
  /// descriptor of its class).
  ValueFact callee;

  void see_trips(int64_t count);
};

/// By Expression::fact / Statement::fact. Most nodes of a function never have one: what applies to
/// no node, and what lies on ways that no run has taken.
class NodeFacts {
 public:
  size_t size() const { return facts_.size(); }
  void resize(size_t count) { facts_.resize(count); }
  /// For what is seen there now.
  NodeFact& at(size_t number);
  const NodeFact& at(size_t number) const;

 private:
  std::vector<std::unique_ptr<NodeFact>> facts_;  // null: nothing was seen
};

/// Facts of one function (tree).
struct Facts {
  NodeFacts nodes;
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
