// See certainty.h.
#include "execute/certainty.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "execute/schedule.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

/// More elements than this are worth the place that they would take for longer.
constexpr int64_t most_elements = 16;

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
             (frame_.learned[slot].origin == Learned::Origin::nothing ||
              frame_.learned[slot].layout.element_count() <= most_elements);
    };
    return std::ranges::all_of(instruction.inputs, is_small) &&
           std::ranges::all_of(instruction.outputs, is_small);
  }

  PlannedCode& code_;
  const Library& library_;
  const Frame& frame_;
  std::unordered_set<uint32_t> late_;
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

}  // namespace janus::execute
