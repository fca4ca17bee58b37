// See certainty.h.
#include "execute/plan/certainty.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/policy.h"
#include "execute/code/schedule.h"
#include "execute/plan/sides.h"
#include "execute/run/learning.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

class NumbersFirst {
 public:
  NumbersFirst(PlannedCode& code, const Library& library, const Frame& frame)
      : code_(code), library_(library), frame_(frame) {}

  void sort() {
    const std::vector<bool> is_first = choose();
    std::vector<Instruction> first, rest;
    for (size_t i = 0; i < code_.tail; ++i) {
      Instruction& instruction = code_.instructions[i];
      if (is_first[i]) instruction.dead.clear();  // what it used last may now be used after it
      (is_first[i] ? first : rest).push_back(std::move(instruction));
    }
    std::move(rest.begin(), rest.end(), std::back_inserter(first));
    std::move(first.begin(), first.end(), code_.instructions.begin());
  }

 private:
  /// What may fail, and what that needs.
  std::vector<bool> choose() {
    std::vector<bool> chosen(code_.tail);
    for (size_t i = 0; i < code_.tail; ++i) {
      const Instruction& instruction = code_.instructions[i];
      chosen[i] = is_light(instruction);
      if (!chosen[i]) late_.insert(instruction.outputs.begin(), instruction.outputs.end());
    }
    std::unordered_set<uint32_t> needed;
    for (size_t i = code_.tail; i-- > 0;) {
      const Instruction& instruction = code_.instructions[i];
      const auto is_needed = [&](uint32_t slot) { return needed.contains(slot); };
      chosen[i] = chosen[i] && (!is_certain(instruction, library_, frame_) ||
                                std::ranges::any_of(instruction.outputs, is_needed));
      if (chosen[i]) needed.insert(instruction.inputs.begin(), instruction.inputs.end());
    }
    return chosen;
  }

  bool is_light(const Instruction& instruction) const {
    switch (instruction.action) {
      case Action::number:
      case Action::size:
      case Action::item:
      case Action::guard:
      case Action::kernel:
        break;
      case Action::operation:
        if (!instruction.node->op->is(graph::Trait::pure) || draws(*instruction.node)) return false;
        break;
      default:
        return false;
    }
    const auto is_small = [&](uint32_t slot) {
      return !late_.contains(slot) &&
             (!frame_.learned[slot].is_tensor() ||
              frame_.learned[slot].layout.element_count() <= policy::kMostElementsFirst);
    };
    return std::ranges::all_of(instruction.inputs, is_small) &&
           std::ranges::all_of(instruction.outputs, is_small);
  }

  PlannedCode& code_;
  const Library& library_;
  const Frame& frame_;
  std::unordered_set<uint32_t> late_;
};

/// Looks for the beginning from the end: at first as far ahead as instructions allow it, then back
/// behind what must be there before it.
class Certainty {
 public:
  Certainty(const Code& code, const PlannedCode& planned, const Lifetimes& lifetimes,
            const Library& library, const Frame& frame)
      : code_(code),
        planned_(planned),
        lifetimes_(lifetimes),
        library_(library),
        frame_(frame),
        sides_(find_sides(planned)),
        begin_(planned.tail) {}

  CertainPart find(const std::vector<size_t>& beside_until) {
    if (code_.commits.empty() && code_.rebinds.empty())
      return {begin_, {}};  // nothing to hurry for
    bool has_collective = false;
    while (begin_ > 0 && (cannot_fail(begin_ - 1) || tells_beforehand(begin_ - 1))) {
      if (has_collective && !communicates(begin_ - 1)) break;
      has_collective |= communicates(begin_ - 1);
      --begin_;
    }
    // Operations that run beside each other all start at the place of the first.
    if (begin_ > 0) begin_ = std::max(begin_, beside_until[begin_ - 1]);
    for (uint32_t slot : code_.body.results) copy_before(slot);
    for (const Write& write : code_.rebinds) copy_before(write.slot);
    for (const Write& write : code_.commits) copy_before(write.slot);
    for (size_t i = planned_.tail; i-- > begin_;)
      if (!cannot_fail(i)) look_before(i);
    leave_sides_whole();
    CertainPart part{begin_, {}};
    for (size_t i = begin_; i < planned_.tail; ++i)
      if (!cannot_fail(i)) part.looked_at.push_back(i);
    return part;
  }

 private:
  const Instruction& at(size_t position) const { return planned_.instructions[position]; }

  /// It can't fail but with an error of the program's, which leaves cells as they are. Waits that
  /// stand together at the end may write what they receive: nothing is computed of it before the
  /// last.
  bool communicates(size_t position) const {
    const graph::Node* node = at(position).node;
    return node != nullptr && node->op->is(graph::Trait::communicates);
  }

  /// Nor give what lies otherwise than in the first run.
  bool cannot_fail(size_t position) const {
    return is_certain(at(position), library_, frame_) &&
           (at(position).action != Action::operation || gives_views(at(position), frame_.learned) ||
            makes_own_results(at(position), frame_.learned));
  }

  /// Whether the operator, by what is there before it, tells whether it fails. On a side it may not
  /// be called at all.
  bool tells_beforehand(size_t position) const {
    const Instruction& instruction = at(position);
    return instruction.action == Action::operation && sides_[position].branch == 0 &&
           frame_.operations[instruction.operation] != nullptr &&
           !frame_.operations[instruction.operation]->looked_at().empty() &&
           makes_own_results(instruction, frame_.learned);
  }

  /// What an operator is looked at by, its indices and the tensor that they lead into, must be
  /// there before the first write to a cell.
  void look_before(size_t position) {
    const Instruction& instruction = at(position);
    make_before(instruction.inputs[0], position);
    for (const size_t input : frame_.operations[instruction.operation]->looked_at())
      make_before(instruction.inputs[input], position);
  }

  /// What leaves the graph and lies in a cell's or an input's memory must be there before the first
  /// write to a cell.
  void copy_before(uint32_t slot) {
    if (frame_.learned[slot].is_tensor() && lifetimes_.of(slot).is_outside)
      make_before(slot, planned_.instructions.size());
  }

  void make_before(uint32_t slot, size_t end) {
    for (size_t i = begin_; i < end; ++i)
      if (at(i).gives(slot)) begin_ = i + 1;
  }

  /// It does not begin in the middle of a side, nor between two.
  void leave_sides_whole() {
    for (size_t i = 0; i < begin_; ++i)
      if (at(i).action == Action::skip) begin_ = std::max(begin_, i + 1 + at(i).rest_size);
  }

  const Code& code_;
  const PlannedCode& planned_;
  const Lifetimes& lifetimes_;
  const Library& library_;
  const Frame& frame_;
  const std::vector<Standing> sides_;  ///< by instruction
  size_t begin_;
};

}  // namespace

void compute_numbers_first(PlannedCode& code, const Library& library, const Frame& frame) {
  NumbersFirst(code, library, frame).sort();
}

bool is_certain(const Instruction& instruction, const Library& library, const Frame& frame) {
  switch (instruction.action) {
    case Action::kernel:
      return !instruction.kernel->may_fail();
    case Action::relayout:
    case Action::item:
    case Action::identity:
    case Action::skip:
    case Action::give:
      return true;
    case Action::operation:
      return frame.operations[instruction.operation] != nullptr &&
             library.is_certain(*instruction.node);
    default:
      return false;
  }
}

CertainPart find_certain_part(const Code& code, const PlannedCode& planned,
                              const Lifetimes& lifetimes, const std::vector<size_t>& beside_until,
                              const Library& library, const Frame& frame) {
  return Certainty(code, planned, lifetimes, library, frame).find(beside_until);
}

}  // namespace janus::execute
