// See sides.h.
#include "execute/sides.h"

#include <algorithm>
#include <map>

#include "execute/kernel_call.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::execute {

namespace {

/// One `if` on its way into the plan.
class Opening {
 public:
  Opening(const Instruction& choose, const Frame& frame) : choose_(choose), frame_(frame) {}

  /// False: it has to stay as it is.
  bool open() {
    if (choose_.action != Action::choose || choose_.node->op != &op::if_) return false;
    const auto is_known = [&](size_t i) {
      if (!choose_.node->outputs[i]->type.is_tensor())
        return choose_.node->outputs[i]->type.is_number();
      const uint32_t slot = choose_.outputs[i];
      return find(slot) != nullptr && find(slot)->root == slot;
    };
    for (size_t i = 0; i < choose_.outputs.size(); ++i)
      if (!is_known(i)) return false;
    const size_t first = begin_side(0);
    if (!add_side(0)) return false;
    end_side(first);
    const size_t second = begin_side(1);
    if (!add_side(1)) return false;
    end_side(second);
    Instruction end = giving();
    end.dead = choose_.dead;
    instructions_.push_back(std::move(end));
    for (const size_t skip : {first, second})
      instructions_[skip].rest_size = instructions_.size() - skip - 1;
    return true;
  }

  std::vector<Instruction>& instructions() { return instructions_; }
  const std::map<uint32_t, Learned>& learned() const { return learned_; }

 private:
  const Learned* find(uint32_t slot) const {
    const auto found = learned_.find(slot);
    const Learned& learned = found != learned_.end() ? found->second : frame_.learned[slot];
    return learned.origin == Learned::Origin::nothing ? nullptr : &learned;
  }

  size_t begin_side(size_t side) {
    Instruction skip;
    skip.action = Action::skip;
    skip.node = choose_.node;
    skip.inputs = skip.used = {choose_.inputs[0]};
    skip.wanted = side == 0;
    instructions_.push_back(std::move(skip));
    return instructions_.size() - 1;
  }

  void end_side(size_t skip) { instructions_[skip].side_size = instructions_.size() - skip - 1; }

  bool add_side(size_t index) {
    const Sequence& side = choose_.blocks[index];
    names_.clear();
    for (const Instruction& instruction : side.instructions) {
      if (!can_be_planned(instruction)) return false;
      learn(instruction);
    }
    const graph::Block& block = *choose_.node->blocks[index];
    for (size_t i = 0; i < side.results.size(); ++i)
      if (side.own_results[i] && is_made_by_kernel(side, side.results[i]) &&
          find(side.results[i])->layout == find(choose_.outputs[i])->layout)
        names_[side.results[i]] = choose_.outputs[i];
    for (const Instruction& instruction : side.instructions)
      instructions_.push_back(renamed(instruction));
    for (size_t i = 0; i < side.results.size(); ++i) {
      const graph::Node* made = block.results[i]->definition;
      const bool is_undefined = made != nullptr && made->op == &op::undefined;
      const uint32_t from = named(side.results[i]);
      if (is_undefined || from == choose_.outputs[i]) continue;
      if (block.results[i]->type.is_tensor() && find(side.results[i]) == nullptr) return false;
      Instruction give = giving();
      give.inputs = give.used = {from};
      give.outputs = {choose_.outputs[i]};
      instructions_.push_back(std::move(give));
    }
    return true;
  }

  Instruction giving() const {
    Instruction give;
    give.action = Action::give;
    give.node = choose_.node;
    return give;
  }

  bool can_be_planned(const Instruction& instruction) const {
    switch (instruction.action) {
      case Action::number:
      case Action::size:
        return true;
      case Action::item:
      case Action::kernel:
        break;
      default:
        return false;
    }
    for (size_t i = 0; i < instruction.inputs.size(); ++i)
      if (instruction.node->inputs[i]->type.is_tensor() && find(instruction.inputs[i]) == nullptr)
        return false;
    return true;
  }

  /// What a kernel gives follows from what it is given.
  void learn(const Instruction& instruction) {
    if (instruction.action != Action::kernel) return;
    std::vector<const Layout*> inputs;
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const bool is_tensor = instruction.node->inputs[i]->type.is_tensor();
      inputs.push_back(is_tensor ? &find(instruction.inputs[i])->layout : nullptr);
    }
    const std::vector<Layout> outputs = fused_layouts(*instruction.node, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const uint32_t slot = instruction.outputs[i];
      learned_[slot] = {.origin = Learned::Origin::computed, .layout = outputs[i], .root = slot};
    }
  }

  static bool is_made_by_kernel(const Sequence& side, uint32_t slot) {
    return std::ranges::any_of(side.instructions, [&](const Instruction& instruction) {
      return instruction.action == Action::kernel &&
             std::ranges::find(instruction.outputs, slot) != instruction.outputs.end();
    });
  }

  /// With what it makes for the `if` in the result's slot.
  Instruction renamed(Instruction instruction) const {
    for (auto* slots : {&instruction.inputs, &instruction.outputs, &instruction.used})
      for (uint32_t& slot : *slots) slot = named(slot);
    return instruction;
  }

  uint32_t named(uint32_t slot) const {
    const auto name = names_.find(slot);
    return name == names_.end() ? slot : name->second;
  }

  const Instruction& choose_;
  const Frame& frame_;
  std::vector<Instruction> instructions_;
  std::map<uint32_t, Learned> learned_;  ///< of what the sides compute
  std::map<uint32_t, uint32_t> names_;   ///< results that are made in the slot of the `if`'s
};

}  // namespace

void open_branches(PlannedCode& code, Frame& frame) {
  std::vector<Instruction> instructions;
  size_t tail = 0;
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    if (i == code.tail) tail = instructions.size();
    Opening opening(code.instructions[i], frame);
    if (!opening.open()) {
      instructions.push_back(std::move(code.instructions[i]));
      continue;
    }
    std::ranges::move(opening.instructions(), std::back_inserter(instructions));
    for (const auto& [slot, learned] : opening.learned()) frame.learned[slot] = learned;
  }
  if (code.tail == code.instructions.size()) tail = instructions.size();
  code = {.instructions = std::move(instructions), .tail = tail};
}

std::vector<Standing> find_sides(const PlannedCode& code) {
  std::vector<Standing> sides(code.instructions.size());
  size_t branches = 0;
  for (size_t i = 0; i < sides.size(); ++i) {
    const Instruction& skip = code.instructions[i];
    if (skip.action != Action::skip || sides[i].branch != 0) continue;
    if (skip.wanted) ++branches;
    for (size_t k = 1; k <= skip.side_size; ++k) sides[i + k] = {branches, skip.wanted};
  }
  return sides;
}

}  // namespace janus::execute
