// See sides.h.
#include "execute/plan/sides.h"

#include <algorithm>
#include <map>
#include <set>

#include "execute/plan/rehearsal.h"
#include "ops/list.h"

namespace janus::execute {

namespace {

/// The body with `if`s on their way into the plan.
class Opening {
 public:
  Opening(const Code& code, const PlannedCode& planned, Frame& frame, Library& library)
      : planned_(planned), frame_(frame), rehearsal_(library, frame) {
    for (const Write& write : code.commits) committed_.insert(write.slot);
  }

  PlannedCode open() {
    PlannedCode opened;
    for (size_t i = 0; i < planned_.instructions.size(); ++i) {
      if (i == planned_.tail) opened.tail = instructions_.size();
      const Instruction& instruction = planned_.instructions[i];
      if (can_be_opened(instruction))
        add_sides(instruction);
      else
        instructions_.push_back(instruction);
    }
    if (planned_.tail == planned_.instructions.size()) opened.tail = instructions_.size();
    opened.instructions = std::move(instructions_);
    return opened;
  }

 private:
  const Learned* find(uint32_t slot) const {
    const Learned& learned = frame_.learned[slot];
    return learned.is_tensor() ? &learned : nullptr;
  }

  bool can_be_opened(const Instruction& instruction) {
    if (instruction.action != Action::choose) return false;
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      const graph::Type& type = instruction.node->outputs[i]->type;
      const Learned* known = type.is_tensor() ? find(instruction.outputs[i]) : nullptr;
      if (!type.is_number() && (known == nullptr || known->root != instruction.outputs[i] ||
                                !known->layout.is_separate()))
        return false;
    }
    return rehearsal_.learn_sides(instruction) && rehearsal_.lies_as_its_sides(instruction);
  }

  /// Either side behind an instruction that skips it, and the end of both.
  void add_sides(const Instruction& choose) {
    const size_t first = add_side(choose, 0);
    const size_t second = add_side(choose, 1);
    Instruction end = giving(choose);
    end.dead = choose.dead;
    instructions_.push_back(std::move(end));
    for (const size_t skip : {first, second})
      instructions_[skip].rest_size = instructions_.size() - skip - 1;
  }

  /// Where its skip stands.
  size_t add_side(const Instruction& choose, size_t index) {
    const size_t begin = instructions_.size();
    Instruction skip;
    skip.action = Action::skip;
    skip.node = choose.node;
    skip.inputs = skip.used = {named(choose.inputs[0])};
    skip.wanted = index == 0;
    instructions_.push_back(std::move(skip));
    const Sequence& side = choose.blocks[index];
    name_results(choose, side);
    for (const Instruction& instruction : side.instructions) {
      if (instruction.action == Action::choose)
        add_sides(instruction);
      else
        instructions_.push_back(renamed(instruction));
    }
    for (size_t i = 0; i < side.results.size(); ++i)
      if (!is_undefined(*choose.node->blocks[index]->results[i]))
        give(choose, named(side.results[i]), named(choose.outputs[i]));
    instructions_[begin].side_size = instructions_.size() - begin - 1;
    return begin;
  }

  static bool is_undefined(const graph::Value& value) {
    return value.definition != nullptr && value.definition->op == &op::undefined;
  }

  static Instruction giving(const Instruction& choose) {
    Instruction give;
    give.action = Action::give;
    give.node = choose.node;
    return give;
  }

  void give(const Instruction& choose, uint32_t from, uint32_t to) {
    if (from == to) return;
    Instruction instruction = giving(choose);
    instruction.inputs = instruction.used = {from};
    instruction.outputs = {to};
    instructions_.push_back(std::move(instruction));
  }

  /// What the side may make in the memory of the `if`'s result gets that slot, and so do views.
  void name_results(const Instruction& choose, const Sequence& side) {
    for (size_t i = 0; i < side.results.size(); ++i) {
      const uint32_t result = side.results[i], output = named(choose.outputs[i]);
      if (!side.own_results[i] || !may_be_made_in(output, result, side)) continue;
      names_[result] = output;
      for (Learned& learned : frame_.learned.all())
        if (learned.root == result) learned.root = output;
    }
  }

  bool may_be_made_in(uint32_t output, uint32_t slot, const Sequence& side) const {
    if (find(slot) == nullptr || find(slot)->root != slot ||
        find(slot)->layout != find(output)->layout)
      return false;
    const auto made = std::ranges::find_if(side.instructions, [&](const Instruction& instruction) {
      return std::ranges::find(instruction.outputs, slot) != instruction.outputs.end();
    });
    if (made == side.instructions.end()) return false;
    // Only kernels and copies write into a parameter's own memory.
    return made->action != Action::operation ||
           (!committed_.contains(output) && gives_dense_memory(*made));
  }

  bool gives_dense_memory(const Instruction& instruction) const {
    return std::ranges::all_of(instruction.outputs, [&](uint32_t slot) {
      const Learned* known = find(slot);
      return known == nullptr || (known->root == named(slot) && known->layout.is_dense());
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

  const PlannedCode& planned_;
  Frame& frame_;
  Rehearsal rehearsal_;
  std::set<uint32_t> committed_;  ///< what becomes the contents of cells
  std::vector<Instruction> instructions_;
  std::map<uint32_t, uint32_t> names_;  ///< results that are made in the slot of the `if`'s
};

}  // namespace

void open_branches(const Code& code, PlannedCode& planned, Frame& frame, Library& library) {
  const auto is_choice = [](const Instruction& each) { return each.action == Action::choose; };
  if (std::ranges::any_of(planned.instructions, is_choice))
    planned = Opening(code, planned, frame, library).open();
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
