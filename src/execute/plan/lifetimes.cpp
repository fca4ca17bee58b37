// See lifetimes.h.
#include "execute/plan/lifetimes.h"

#include <algorithm>

#include "execute/plan/beside.h"

namespace janus::execute {

Lifetimes::Lifetimes(const Code& code, const PlannedCode& planned,
                     const std::vector<size_t>& beside_until, const LearnedSlots& learned)
    : learned_(learned) {
  find_memory();
  const size_t end = planned.instructions.size();
  for (size_t i = 0; i < end; ++i) {
    const Instruction& instruction = planned.instructions[i];
    const size_t last_beside = beside_until[i] - 1;
    for (uint32_t slot : instruction.outputs) {
      if (learned[slot].is_tensor() && learned[slot].root == slot)
        lifetimes_.at(slot).makers.push_back(first_beside(beside_until, i));
      use(slot, last_beside);
    }
    for (uint32_t slot : instruction.operands()) {
      use(slot, last_beside);
      if (instruction.keeps_operands) keep(slot);
    }
  }
  for (uint32_t slot : code.body.results) escape(slot, end);
  for (const Write& write : code.rebinds) escape(write.slot, end);
  for (const Write& write : code.commits) use(write.slot, end);
}

void Lifetimes::find_memory() {
  for (uint32_t slot = 0; slot < learned_.end_slot(); ++slot) {
    const Learned& tensor = learned_[slot];
    if (!tensor.is_tensor()) continue;
    Lifetime& memory = lifetimes_[tensor.root];
    memory.bytes = std::max(memory.bytes, tensor.byte_offset + tensor.layout.span_bytes());
    if (tensor.origin != Learned::Origin::computed) memory.is_outside = true;
  }
}

void Lifetimes::use(uint32_t slot, size_t position) {
  if (!learned_[slot].is_tensor()) return;
  Lifetime& memory = lifetimes_.at(learned_[slot].root);
  memory.last_use = std::max(memory.last_use, position);
  memory.used.insert(slot);
  uses_[slot].push_back(position);
}

void Lifetimes::escape(uint32_t slot, size_t end) {
  if (!learned_[slot].is_tensor()) return;
  use(slot, end);
  lifetimes_.at(learned_[slot].root).escapes = true;
}

void Lifetimes::keep(uint32_t slot) {
  if (!learned_[slot].is_tensor()) return;
  lifetimes_.at(learned_[slot].root).escapes = true;
  kept_.insert(slot);
}

}  // namespace janus::execute
