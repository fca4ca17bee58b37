// The entry assumptions of one graph, compiled: every path is walked once, checks stand at the
// objects on the way, and what the graph needs (inputs, cells) is collected in the same walk.
//
// A check that fails is its own explanation: it returns what was expected, where, and what was
// found. Guards keep no module, tensor or other object of the user alive: identity is assumed of a
// weak reference, and when such an object dies the guards can never hold again (`dead()`).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/dim.h"
#include "python/object.h"
#include "speculate/generated.h"

namespace janus::speculate {

/// Why guards did not hold.
struct Mismatch {
  Reason reason;
  std::string path;  ///< Source::describe() of the object that differed; empty: the call as a whole
  bool dead = false;  ///< an object that had to be found is gone for good
  /// What was computed of the call's numbers and had to be one value, such as `step%4`; else empty.
  std::string formula = {};
};

/// An object that is expected again at later calls: by weak reference if it is the user's.
class ExpectedObject {
 public:
  ExpectedObject() = default;
  /// `on_death`: called (with the weak reference) when a weakly kept object dies; may be null.
  ExpectedObject(PyObject* object, PyObject* on_death);

  /// The object; null once it is dead.
  PyObject* get() const;
  bool is(PyObject* object) const { return object == raw_ && get() == raw_; }
  bool dead() const { return get() == nullptr; }
  bool may_die() const { return static_cast<bool>(weak_); }

 private:
  PyObject* raw_ = nullptr;
  python::Object strong_, weak_;
};

class Recollection;
struct Check;

class Guards {
 public:
  /// For a graph that was generated from `call`. `captured`: what check() shall collect, by index.
  Guards(const Generated& generated, const Call& call, std::span<const Source* const> captured,
         PyObject* on_death = nullptr);
  ~Guards();
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  /// Nothing if all assumptions hold for this call; `captured` then has the objects asked for.
  /// `environment` is that of the call: asked for once, for all graphs in the cache.
  std::optional<Mismatch> check(const Call& call, const Environment& environment,
                                std::vector<python::Object>& captured) const;

  /// Whether the check that did not hold last time does not hold now either: quick, and without a
  /// reason. False says nothing.
  bool fail_again(const Call& call) const;

  /// An object died of which identity is assumed (`on_death` was called): another one may lie where
  /// it was. Without `on_death` every check walks everything.
  void forget();

  /// Visits each object about whose value (a number, a tensor's shape) something is assumed, as far
  /// as the paths lead somewhere in this call, with its path.
  using Visit = std::function<void(const std::string& path, PyObject* object)>;
  void visit_values(const Call& call, const Visit& visit) const;

  /// One line an assumption.
  std::vector<std::string> describe() const;
  size_t assumption_count() const;
  /// How many checks were spared: nothing had changed since the one before.
  uint64_t recalled() const;

  struct Tree;

 private:
  std::optional<Mismatch> check_all(const Call& call, std::vector<python::Object>& captured) const;

  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Recollection> recollection_;
  mutable const Check* failed_ = nullptr;  ///< in the last walk that failed
  mutable uint32_t failed_step_ = 0;
  bool is_verified_ = false;  ///< with TORCHJANUS_LOG=verify: nothing is taken from memory alone
};

}  // namespace janus::speculate
