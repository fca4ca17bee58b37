// The compiled entry assumptions of one graph. One walk over all access paths checks the objects on
// the way and collects what the graph needs (inputs, cells).
//
// A failed check is its own explanation: it returns what was expected, where, and what was found.
// Guards keep no module, tensor or other object of the user alive: identity is checked against a
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

class InlineCache;
struct Check;
struct GuardTree;

class Guards {
 public:
  /// The guards of a graph that was generated from `call`. `captured`: what check() collects.
  Guards(const Generated& generated, const Call& call, std::span<const Source* const> captured,
         PyObject* on_death = nullptr);
  ~Guards();
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  /// nullopt if all assumptions hold for this call; `captured` then has the collected objects.
  /// `environment` is the call's, made once for all graphs in the cache.
  std::optional<Mismatch> check(const Call& call, const Environment& environment,
                                std::vector<python::Object>& captured) const;

  /// A quick test whether the check that failed last time fails again. False says nothing.
  bool fail_again(const Call& call) const;

  /// Drops the inline cache: an object died whose identity is assumed (`on_death` was called), and
  /// another one may get its address. Without `on_death` every check walks all paths.
  void forget();

  /// Visits each object about whose value (a number, a tensor's shape) something is assumed, with
  /// its path. Paths that lead nowhere in this call are left out.
  using Visit = std::function<void(const std::string& path, PyObject* object)>;
  void visit_values(const Call& call, const Visit& visit) const;

  /// One line for each assumption.
  std::vector<std::string> describe() const;
  size_t assumption_count() const;
  /// The number of checks that hit the inline cache.
  uint64_t recalled() const;

 private:
  std::optional<Mismatch> check_all(const Call& call, std::vector<python::Object>& captured) const;

  std::unique_ptr<GuardTree> tree_;
  std::unique_ptr<InlineCache> inline_cache_;
  mutable const Check* failed_ = nullptr;  ///< in the last walk that failed
  mutable uint32_t failed_step_ = 0;
  bool is_verified_ =
      false;  ///< TORCHJANUS_LOG=verify:2: each hit of the cache is confirmed by a walk
};

}  // namespace janus::speculate
