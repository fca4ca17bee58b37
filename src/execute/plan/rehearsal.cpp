// See rehearsal.h.
#include "execute/plan/rehearsal.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "execute/code/fused_layouts.h"
#include "execute/run/learning.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::execute {

using graph::Value;

namespace {

/// Whether it may be called with zeros, at a time when the program would not.
bool may_be_rehearsed(const Instruction& instruction, const Library& library, const Frame& frame) {
  if (frame.operations[instruction.operation] == nullptr || instruction.keeps_operands)
    return false;
  const graph::OpDef& op = *instruction.node->op;
  return library.is_certain(*instruction.node) ||
         (op.is(graph::Trait::random) && &op != &op::opaque);
}

}  // namespace

Rehearsal::Rehearsal(Library& library, Frame& frame)
    : library_(library), frame_(frame), slots_(frame.slots) {
  for (Slot& slot : frame_.slots)
    if (slot.is_tensor()) slot.clear();
}

Rehearsal::~Rehearsal() { frame_.slots = std::move(slots_); }

bool Rehearsal::learn_sides(const Instruction& choose) {
  return choose.node->op == &op::if_ &&
         std::ranges::all_of(choose.blocks, [&](const auto& side) { return learn_side(side); });
}

bool Rehearsal::learn_side(const Sequence& side) {
  for (const Instruction& instruction : side.instructions) {
    if (!learn_instruction(instruction)) return false;
    for (uint32_t slot : instruction.dead) frame_.slots[slot].clear();
  }
  return true;
}

bool Rehearsal::learn_instruction(const Instruction& instruction) {
  switch (instruction.action) {
    case Action::number:
    case Action::size:
    case Action::guard:
      return true;
    case Action::item:
      return is_known(instruction.inputs[0], *instruction.node->inputs[0]);
    case Action::kernel:
      return learn_kernel(instruction);
    case Action::operation:
      return learn_operation(instruction);
    case Action::choose:
      return learn_sides(instruction) && learn_choice(instruction);
    default:
      return false;
  }
}

bool Rehearsal::is_known(uint32_t slot, const Value& value) const {
  return !value.type.is_tensor() || frame_.learned[slot].is_tensor();
}

bool Rehearsal::learn_kernel(const Instruction& instruction) {
  const graph::Node& node = *instruction.node;
  std::vector<const Layout*> inputs;
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (!is_known(instruction.inputs[i], *node.inputs[i])) return false;
    const bool is_tensor = node.inputs[i]->type.is_tensor();
    inputs.push_back(is_tensor ? &frame_.learned[instruction.inputs[i]].layout : nullptr);
  }
  const std::vector<Layout> outputs = fused_layouts(node, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Sizes that a side would not meet if it is not taken for them need not fit together.
    if (!has_type(outputs[i], *node.outputs[i], frame_)) return false;
    const uint32_t slot = instruction.outputs[i];
    frame_.learned.of(slot) = {
        .origin = Learned::Origin::computed, .layout = outputs[i], .root = slot};
  }
  return true;
}

bool Rehearsal::learn_operation(const Instruction& instruction) {
  const graph::Node& node = *instruction.node;
  if (!may_be_rehearsed(instruction, library_, frame_)) return false;
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (!is_known(instruction.inputs[i], *node.inputs[i])) return false;
    stand_in(instruction.inputs[i], *node.inputs[i]);
  }
  try {
    frame_.operations[instruction.operation]->run(
        {frame_.slots.data(), instruction.inputs, instruction.outputs});
    learn(instruction, frame_, library_);
  } catch (const std::exception&) {
    return false;  // sizes that do not fit together; what a draw is given
  }
  return true;
}

/// What comes out of an `if` lies as in the first side that gives it, but each element in a place
/// of its own: the other side is copied there.
bool Rehearsal::learn_choice(const Instruction& choose) {
  for (size_t i = 0; i < choose.outputs.size(); ++i) {
    const Value& output = *choose.node->outputs[i];
    if (!output.type.is_tensor()) continue;
    const uint32_t slot = choose.outputs[i];
    expect_undefined(slot, output, frame_);
    for (size_t side = choose.blocks.size(); side-- > 0;) {
      const Learned& given = frame_.learned[choose.blocks[side].results[i]];
      if (given.is_tensor() && given.layout.is_separate())
        frame_.learned.of(slot).layout = given.layout;
    }
    if (!has_type(frame_.learned[slot].layout, output, frame_)) return false;
  }
  return lies_as_its_sides(choose);
}

bool Rehearsal::lies_as_its_sides(const Instruction& choose) const {
  if (!choose.shows_strides) return true;
  for (size_t i = 0; i < choose.outputs.size(); ++i) {
    const Layout& layout = frame_.learned[choose.outputs[i]].layout;
    for (const Sequence& side : choose.blocks) {
      const Learned& given = frame_.learned[side.results[i]];
      if (given.is_tensor() && given.layout != layout) return false;
    }
  }
  return true;
}

/// Puts zeros where the value would be.
void Rehearsal::stand_in(uint32_t slot, const Value& value) {
  Slot& place = frame_.slots[slot];
  if (!place.is_empty()) return;
  switch (value.type.kind) {
    case graph::Type::Kind::boolean:
      place = Slot::of(false);
      return;
    case graph::Type::Kind::i64:
      place = Slot::of(int64_t{0});
      return;
    case graph::Type::Kind::f64:
      place = Slot::of(0.0);
      return;
    default:
      break;
  }
  if (!value.type.is_tensor()) return;
  Learned& learned = frame_.learned.of(slot);
  const int64_t bytes = std::max<int64_t>(learned.layout.span_bytes(), 1);
  if (bytes > zero_bytes_) {
    zeros_.emplace_back(bytes);
    std::memset(zeros_.back().data(), 0, static_cast<size_t>(bytes));
    zero_bytes_ = bytes;
  }
  place = library_.over_memory(zeros_.back().data(), learned.layout);
  learned.storage = library_.storage(place);
  learned.data = static_cast<const char*>(library_.data(place));
}

}  // namespace janus::execute
