// See beside.h.
#include "execute/beside.h"

#include <algorithm>
#include <unordered_set>

#include "base/options.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

/// How far a partner is looked for.
constexpr size_t farthest = 8;

class Pairing {
 public:
  Pairing(PlannedCode& code, const Frame& frame) : code_(code), frame_(frame) {}

  std::vector<bool> pair() {
    std::vector<bool> first(code_.instructions.size());
    for (size_t i = 0; i + 1 < code_.tail; ++i) {
      if (!is_candidate(code_.instructions[i])) continue;
      const size_t moved = bring_partner(i);
      if (moved == 0) continue;
      i += moved - 1;  // where the first one is now
      first[i] = true;
      ++i;
    }
    return first;
  }

 private:
  bool is_candidate(const Instruction& instruction) const {
    return instruction.action == Action::operation &&
           frame_.operations[instruction.operation]->can_run_beside();
  }

  /// Puts a partner behind instruction `position`, and what the partner needs before it. Returns
  /// how many instructions came before the partner, the first of the two included; 0: none found.
  size_t bring_partner(size_t position) {
    const size_t end = std::min(code_.tail, position + 1 + farthest);
    for (size_t other = position + 1; other < end; ++other) {
      const Action action = code_.instructions[other].action;
      if (action == Action::skip || action == Action::give) break;  // nothing crosses a side's ends
      if (!is_candidate(code_.instructions[other])) continue;
      std::vector<size_t> needed;
      if (!find_needed(position, other, needed)) continue;
      return reorder(position, other, needed);
    }
    return 0;
  }

  /// The instructions between the two that `other` needs; false if it can't go before them all.
  bool find_needed(size_t position, size_t other, std::vector<size_t>& needed) const {
    std::unordered_set<uint32_t> wanted(code_.instructions[other].inputs.begin(),
                                        code_.instructions[other].inputs.end());
    for (size_t i = other; i-- > position;) {
      const Instruction& instruction = code_.instructions[i];
      const bool gives = std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                                     [&](uint32_t slot) { return wanted.contains(slot); });
      if (!gives) continue;
      if (i == position || !instruction.node->op->is(graph::Trait::view)) return false;
      needed.insert(needed.begin(), i);
      wanted.insert(instruction.inputs.begin(), instruction.inputs.end());
    }
    return true;
  }

  size_t reorder(size_t position, size_t other, const std::vector<size_t>& needed) {
    std::vector<size_t> order = needed;
    order.push_back(position);
    order.push_back(other);
    for (size_t i = position + 1; i < other; ++i) {
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
              code_.instructions.begin() + static_cast<ptrdiff_t>(position));
    return needed.size() + 1;
  }

  PlannedCode& code_;
  const Frame& frame_;
};

}  // namespace

std::vector<bool> pair_operations(PlannedCode& code, const Frame& frame) {
  if (!is_parallel()) return std::vector<bool>(code.instructions.size());
  return Pairing(code, frame).pair();
}

}  // namespace janus::execute
