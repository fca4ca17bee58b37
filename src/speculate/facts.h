// Type feedback: what profiled runs saw at each syntax node, as elements of a lattice.
//
//   nothing seen < one value < one type and shape < type and shape with varying dimensions < type <
//   anything
//
// A fact only ever becomes more general, so the height of the lattice bounds the number of graphs
// of one function.
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

/// The fact about the values of one place: a node, an argument, an access path.
///
/// A tensor starts at `shape`, whatever its identity. Two shapes of one rank and dtype join to
/// `varying_shape`; any other difference of two tensors joins to `type`. Sizes 0 and 1 are special,
/// since broadcasting depends on them: a symbolic dimension never stands for them. A dimension that
/// varied is -1 in `sizes`; `least_sizes` remembers its smallest size. The generator makes it
/// symbolic if that is at least 2. Otherwise it specialises on the size of the call. The number of
/// such graphs is bounded: 0, 1, and one symbolic.
///
/// Other objects start at `value`. Numbers (with their class, floats by their bits), strings,
/// bytes, None and the like, and tuples of these are kept. Any other object is kept by weak
/// reference, if its class allows one; else the fact starts at `type`. So facts keep nothing of the
/// program alive but the classes of values.
class ValueFact {
 public:
  enum class Level { nothing, value, shape, varying_shape, type, anything };

  /// Joins with one more observation.
  void see(PyObject* object);
  Level level() const { return level_; }
  /// The class of all values seen; null above `type`. Held strongly, also the user's classes.
  PyObject* type() const { return type_.get(); }
  /// The one value seen (borrowed); null unless level() == value, and after a weakly kept one died.
  PyObject* value() const;
  /// Of tensors at level shape or varying_shape: dtype and sizes, -1 for a dimension that varied.
  bool is_tensor() const { return is_tensor_; }
  graph::DType dtype() const { return dtype_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  /// Whether that dimension of the tensors varied.
  bool varies(size_t dimension) const {
    if (level_ != Level::varying_shape) return level_ >= Level::type;
    return dimension < sizes_.size() && sizes_[dimension] < 0;
  }
  /// The smallest size seen of each dimension; as long as sizes().
  const std::vector<int64_t>& least_sizes() const { return least_sizes_; }
  /// Notes the identity and sizes of the tensor in call number `call`.
  void note_tensor(uint64_t call, PyObject* object);
  /// Whether dimensions of two values differed in a call that both remember.
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
    const PyObject* identity = nullptr;  ///< only compared: the object may be gone
    std::vector<int64_t> sizes;
  };
  std::deque<TensorInCall> latest_;
  std::vector<python::Object> classes_;
  bool too_many_classes_ = false;
};

/// Everything seen at one syntax node. Only the members that apply to its kind are filled.
struct NodeFact {
  /// Tests: how often an expression was true and false. They are noted at the tested expression (an
  /// `if` of a comprehension, an operand of `and`/`or`/`not`, a guard of `case`); for If, While,
  /// IfExp and Assert also at the node itself. The last operand of `and`/`or` counts only where the
  /// whole is a test.
  uint64_t taken = 0, not_taken = 0;
  /// Loops: iterations begun until the loop ended in any way; -1: it never ran. They are noted at
  /// For and While; for For and comprehensions also at the expression that is iterated over.
  int64_t least_trips = -1, most_trips = -1;
  ValueFact value;  ///< results of calls, attribute and subscript reads, non-local names
  /// Loops, at For and at the expression that is iterated over: its elements.
  ValueFact element;
  /// Calls: the callee. A bound method counts as its function, a builtin method as the descriptor
  /// of its class.
  ValueFact callee;

  void see_trips(int64_t count);
};

/// Facts by number (Expression::fact, Statement::fact). Most numbers never get one: nothing applies
/// to the node, or no run has reached it.
class NodeFacts {
 public:
  size_t size() const { return facts_.size(); }
  void resize(size_t count) { facts_.resize(count); }
  /// The fact of that number, made at first use.
  NodeFact& at(size_t number);
  const NodeFact& at(size_t number) const;

 private:
  std::vector<std::unique_ptr<NodeFact>> facts_;  // null: nothing was seen yet
};

/// Facts of one function (tree).
struct Facts {
  NodeFacts nodes;
  /// By access path (Source::describe()): values of arguments and of what is read from them. The
  /// dispatcher adds a value when an assumption about the path failed, which generalises the fact.
  std::map<std::string, ValueFact, std::less<>> paths;
  /// Profiled runs. Guards of a graph that failed (their ids are fact numbers) count in `nodes`.
  uint64_t runs = 0;
};

/// All facts of the process, by code object of the original function (or statements).
class ProfileStore {
 public:
  /// The facts of the function with that code object; empty at first use.
  Facts& of(PyObject* code, size_t node_count);
  Facts* find(PyObject* code);

 private:
  std::map<PyObject*, std::unique_ptr<Facts>> facts_;  // keys are kept alive
  std::vector<python::Object> alive_;
};

ProfileStore& profiles();

}  // namespace janus::speculate
