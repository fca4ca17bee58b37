// Live ranges of memory: which tensors of a plan alias each other, and from when until when each
// allocation is needed.
//
// The first run has shown in whose memory each tensor lies (learned.h). All that lie in the memory
// of one root live as one: from the instruction that makes it to the last that uses any of them.
// Operations that run beside each other count as one instruction, since they take place at the same
// time: what one of them reads must last until all are done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "execute/code/code.h"
#include "execute/frame/learned.h"
#include "execute/plan/planned_code.h"

namespace janus::execute {

/// Of a piece of memory.
struct Lifetime {
  bool is_outside = false;     ///< an input's or a cell's: where it is differs from run to run
  std::vector<size_t> makers;  ///< instructions that make it: one, or one on each side of an `if`
  size_t last_use = 0;         ///< instruction that uses it last; instruction count: the end
  bool escapes = false;        ///< what lies in it leaves the run, or is kept by what does
  int64_t bytes = 0;           ///< from the root's first element to the end of the furthest slot
  std::set<uint32_t> used;     ///< the slots in it that anything uses

  /// The first instruction that makes it.
  size_t begin() const { return makers.empty() ? SIZE_MAX : makers.front(); }
};

class Lifetimes {
 public:
  /// `beside_until`: what find_groups_beside gave (beside.h).
  Lifetimes(const Code& code, const PlannedCode& planned, const std::vector<size_t>& beside_until,
            const LearnedSlots& learned);

  /// Of the memory that the slot's tensor lies in.
  const Lifetime& of(uint32_t slot) const { return lifetimes_.at(learned_[slot].root); }
  /// The instructions that use a used slot, in order: what makes it comes first.
  const std::vector<size_t>& uses(uint32_t slot) const { return uses_.at(slot); }
  /// Slots whose tensors a frame keeps (Instruction::keeps_operands), maybe for longer than the run
  /// lasts.
  const std::set<uint32_t>& kept() const { return kept_; }

 private:
  void find_memory();
  void use(uint32_t slot, size_t position);
  void escape(uint32_t slot, size_t end);
  void keep(uint32_t slot);

  const LearnedSlots& learned_;
  std::map<uint32_t, Lifetime> lifetimes_;  // by root
  std::map<uint32_t, std::vector<size_t>> uses_;
  std::set<uint32_t> kept_;
};

}  // namespace janus::execute
