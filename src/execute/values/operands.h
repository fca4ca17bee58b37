// The operands of one call: a range of slots for its inputs and one for its outputs.
//
// Instructions name their operands by indices into the frame's slots, so that a call copies no
// handle and no number before it reads them.
#pragma once

#include <cstdint>
#include <span>

#include "execute/values/slot.h"

namespace janus::execute {

/// Operands of one call: indices into an array of slots.
struct Operands {
  Slot* slots;
  std::span<const uint32_t> inputs;
  std::span<const uint32_t> outputs;

  const Slot& in(size_t index) const { return slots[inputs[index]]; }
  Slot& out(size_t index) const { return slots[outputs[index]]; }
};

}  // namespace janus::execute
