// Branches and loops of the graph whose blocks are being filled, and what is known within them:
// which tests are followed instead of merged, and the outcomes of flags.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/options.h"
#include "frontend/core/graph_writer.h"
#include "frontend/values/restart.h"
#include "frontend/values/value.h"

namespace janus::frontend {

/// A branch or loop whose blocks are being filled.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  virtual ~Scope() = default;
  /// Whether the block is the one at hand.
  virtual bool is_inside(const graph::Block* block) const = 0;
  /// Notes a tensor of the entry that is reached for the first time. It existed all the time.
  virtual void add_entry_object(Changeable& object) = 0;
  /// Whether the tensor may be the same object the next time that this place is reached.
  virtual bool keeps(const Tensor& tensor) const { return false; }
  /// The test that is to be followed if the branch or loop can't be in the graph; null if none.
  virtual const TestKey* test() const = 0;
  /// Whether one way through it may be left by an exception.
  virtual bool is_branch() const { return false; }
  /// What the block at hand knows of a flag.
  virtual std::optional<bool> outcome(const graph::Value* /*flag*/) const { return std::nullopt; }
};

class Scopes {
 public:
  /// `followed`: tests that are followed even if the profile saw both outcomes.
  Scopes(GraphWriter& writer, const std::vector<CannotMerge>& followed)
      : writer_(writer), followed_(followed) {}
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  // --- those that are open (frontend/control/branches.h, loops.h)
  void begin_scope(Scope& scope);
  void end_scope(Scope& scope);
  /// Drops the scopes inside this one.
  void abandon_scopes(const Scope& scope);
  size_t open_scopes() const { return open_scopes_.size(); }
  bool only_branches_since(size_t count) const;
  /// The number of scopes that were begun so far.
  size_t scope_count() const { return scope_count_; }
  /// Whether what is defined in the block can be used at this point.
  bool is_open(const graph::Block* block) const;
  /// Whether a loop or recursion may come to this place with the same tensor again.
  bool may_come_again(const Tensor& tensor);
  /// Notes an object that is reached for the first time. For all open branches and loops it existed
  /// all the time, in its present state.
  void existed_before(Changeable& object);

  // --- what is followed
  /// From now on no branch becomes part of the graph.
  void follow_all() { merges_ = false; }
  bool merges() const { return merges_; }
  /// Why that test is followed and not merged; null if it is not.
  const CannotMerge* followed(const TestKey& test) const;
  /// Whether the first iteration of that loop is taken in front of it.
  bool takes_first_iteration(const TestKey& test) const;
  /// Whether sizes in which the sides of that branch differ are left to the run.
  bool leaves_sizes(const TestKey& test) const;
  /// The test that is to be followed if what is interpreted now can't be converted.
  const std::optional<TestKey>& suspect() const { return suspect_ ? suspect_ : not_narrowed; }
  /// The branch that the Optional came from that was read last.
  std::optional<TestKey> not_narrowed;
  /// Which test or loop of the program an `if` or `while` node is.
  std::unordered_map<const graph::Node*, TestKey> scope_nodes;
  /// Loops of more iterations become loops of the graph, even if their number is always the same.
  int64_t most_unrolled =
      options().is_disabled("unroll") ? -1 : std::numeric_limits<int64_t>::max();
  /// Of a loop that is unrolled, and of what is made of a container element by element.
  static int64_t most_rounds() { return options().most_rounds; }

  // --- flags
  /// A guard in the block at hand ends the run unless the flag is so.
  void note_guarded(const graph::Value* flag, bool outcome);
  /// What is known of a flag at this point: by the branches around it, and by guards.
  std::optional<bool> outcome_of(const graph::Value* flag) const;

 private:
  struct Guarded {
    const graph::Block* block;
    bool outcome;
  };
  void set_suspect(const TestKey* test);

  GraphWriter& writer_;
  const std::vector<CannotMerge>& followed_;
  std::vector<Scope*> open_scopes_;
  size_t scope_count_ = 0;
  bool merges_ = !options().is_disabled("control_flow");
  std::optional<TestKey> suspect_;
  std::map<const graph::Value*, Guarded> guarded_;
};

}  // namespace janus::frontend
