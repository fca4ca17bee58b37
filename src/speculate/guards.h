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

#include "python/object.h"
#include "speculate/generated.h"
#include "speculate/mismatch.h"

namespace janus::speculate {

class Recollection;
struct Check;
struct GuardTree;

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

 private:
  std::optional<Mismatch> check_all(const Call& call, std::vector<python::Object>& captured) const;

  std::unique_ptr<GuardTree> tree_;
  std::unique_ptr<Recollection> recollection_;
  mutable const Check* failed_ = nullptr;  ///< in the last walk that failed
  mutable uint32_t failed_step_ = 0;
  bool is_verified_ = false;  ///< with TORCHJANUS_LOG=verify: nothing is taken from memory alone
};

}  // namespace janus::speculate
