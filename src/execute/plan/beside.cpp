// See beside.h.
#include "execute/plan/beside.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/options.h"
#include "base/policy.h"
#include "base/thread_pool.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

class Grouping {
 public:
  Grouping(PlannedCode& code, const Frame& frame)
      : code_(code),
        frame_(frame),
        most_(std::clamp<size_t>(static_cast<size_t>(thread_count()), 2, policy::kMostBeside)) {}

  std::vector<size_t> group() {
    std::vector<size_t> until(code_.instructions.size());
    std::iota(until.begin(), until.end(), size_t{1});
    for (size_t i = 0; i + 1 < code_.tail; ++i) {
      if (!is_candidate(code_.instructions[i])) continue;
      size_t count = 1;
      while (count < most_ && bring_partner(i, count)) ++count;
      std::fill_n(until.begin() + static_cast<ptrdiff_t>(i), count, i + count);
      i += count - 1;
    }
    return until;
  }

 private:
  bool is_candidate(const Instruction& instruction) const {
    return instruction.action == Action::operation &&
           frame_.operations[instruction.operation]->can_run_beside();
  }

  /// Puts a partner behind the `count` operations from `first` on, and what the partner needs
  /// before them, which moves `first`; false: none found.
  bool bring_partner(size_t& first, size_t count) {
    const size_t end = std::min(code_.tail, first + count + policy::kFarthestPartner);
    for (size_t other = first + count; other < end; ++other) {
      const Action action = code_.instructions[other].action;
      if (action == Action::skip || action == Action::give) break;  // nothing crosses a side's ends
      if (!is_candidate(code_.instructions[other])) continue;
      std::vector<size_t> needed;
      if (!find_needed(first, other, needed)) continue;
      reorder(first, count, other, needed);
      first += needed.size();
      return true;
    }
    return false;
  }

  /// The instructions from `first` on that `other` needs; false if they can't go before them all.
  bool find_needed(size_t first, size_t other, std::vector<size_t>& needed) const {
    std::unordered_set<uint32_t> wanted(code_.instructions[other].inputs.begin(),
                                        code_.instructions[other].inputs.end());
    for (size_t i = other; i-- > first;) {
      const Instruction& instruction = code_.instructions[i];
      const bool gives = std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                                     [&](uint32_t slot) { return wanted.contains(slot); });
      if (!gives) continue;
      if (!instruction.node->op->is(graph::Trait::view)) return false;
      needed.insert(needed.begin(), i);
      wanted.insert(instruction.inputs.begin(), instruction.inputs.end());
    }
    return true;
  }

  void reorder(size_t first, size_t count, size_t other, const std::vector<size_t>& needed) {
    std::vector<size_t> order = needed;
    for (size_t i = first; i < first + count; ++i) order.push_back(i);
    order.push_back(other);
    for (size_t i = first + count; i < other; ++i) {
      if (std::find(needed.begin(), needed.end(), i) == needed.end()) order.push_back(i);
    }
    std::vector<Instruction> moved;
    std::vector<uint32_t> dead;  // what the moved ones used last may now be used after them
    for (size_t i : order) {
      moved.push_back(std::move(code_.instructions[i]));
      std::vector<uint32_t>& own = moved.back().dead;
      dead.insert(dead.end(), own.begin(), own.end());
      own.clear();
    }
    moved.back().dead = std::move(dead);
    std::move(moved.begin(), moved.end(),
              code_.instructions.begin() + static_cast<ptrdiff_t>(first));
  }

  PlannedCode& code_;
  const Frame& frame_;
  const size_t most_;
};

}  // namespace

std::vector<size_t> find_groups_beside(PlannedCode& code, const Frame& frame) {
  if (is_parallel()) return Grouping(code, frame).group();
  std::vector<size_t> alone(code.instructions.size());
  std::iota(alone.begin(), alone.end(), size_t{1});
  return alone;
}

size_t first_beside(const std::vector<size_t>& until, size_t position) {
  while (position > 0 && until[position - 1] > position) --position;
  return position;
}

}  // namespace janus::execute
