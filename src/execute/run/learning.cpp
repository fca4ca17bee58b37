// See learning.h.
#include "execute/run/learning.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "base/check.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::execute {

using graph::Value;

namespace {

/// How the beginning of the instruction's part moves its view of the operand.
std::vector<Move> own_moves(const Instruction& instruction, const Learned& operand,
                            const Frame& frame) {
  if (instruction.moving_part == SIZE_MAX || frame.first_elements.empty()) return {};
  const int64_t stride = operand.layout.strides[instruction.moving_dimension];
  return {{instruction.moving_part, stride * graph::byte_size(operand.layout.dtype)}};
}

/// That of the slot's tensor, as if it had memory of its own.
Learned learned_of(uint32_t slot, Learned::Origin origin, const Frame& frame,
                   const Library& library) {
  const Slot& tensor = frame.slots[slot];
  Learned learned{.origin = origin, .layout = library.layout(tensor), .root = slot};
  learned.storage = library.storage(tensor);
  learned.data = static_cast<const char*>(library.data(tensor));
  return learned;
}

void check_type(const Value& value, const Layout& layout, const Frame& frame) {
  if (has_type(layout, value, frame)) return;
  const std::string what = cat(value.definition->op->name, ": the graph says ",
                               graph::to_string(value.type), ", the operator gave ", layout);
  // Some of torch's operators give other sizes with data than they say without.
  if (value.definition->op == &op::opaque) throw std::runtime_error(what);
  throw InternalError(what);
}

}  // namespace

bool has_type(const Layout& layout, const Value& value, const Frame& frame) {
  bool same = layout.dtype == value.type.dtype && layout.sizes.size() == value.type.shape.size();
  for (size_t d = 0; same && d < layout.sizes.size(); ++d)
    same = value.type.shape[d].evaluate(frame.symbols.lookup()) == layout.sizes[d];
  return same;
}

void learn_operands(const Code& code, Frame& frame, const Library& library) {
  const auto learn = [&](uint32_t slot, Learned::Origin origin) {
    if (frame.slots[slot].is_tensor())
      frame.learned.of(slot) = learned_of(slot, origin, frame, library);
  };
  for (size_t c = 0; c < code.cells.size(); ++c) learn(cell_slot(code, c), Learned::Origin::cell);
  for (const auto& [slot, cell] : code.cell_reads) {
    learn(slot, Learned::Origin::cell);
    if (frame.slots[slot].is_tensor()) frame.learned.of(slot).root = cell_slot(code, cell);
  }
  std::unordered_map<const void*, uint32_t> written;
  for (const Write& write : code.commits)
    if (const uint32_t slot = cell_slot(code, write.cell); frame.slots[slot].is_tensor())
      written.emplace(frame.learned.of(slot).storage, slot);
  for (uint32_t slot : code.body.parameters) {
    learn(slot, Learned::Origin::input);
    if (!frame.slots[slot].is_tensor()) continue;
    const auto cell = written.find(frame.learned.of(slot).storage);
    if (cell != written.end()) frame.learned.of(slot).root = cell->second;
  }
}

void expect_undefined(uint32_t slot, const Value& value, Frame& frame) {
  if (!value.type.is_tensor()) return;
  Learned& learned = frame.learned.of(slot);
  learned = {.origin = Learned::Origin::computed, .root = slot};
  learned.layout.dtype = value.type.dtype;
  for (const graph::Dim& dim : value.type.shape)
    learned.layout.sizes.push_back(dim.evaluate(frame.symbols.lookup()).value());
  learned.layout.strides = contiguous_strides(learned.layout.sizes);
}

void check_opaque_results(const Instruction& instruction, const Frame& frame,
                          const Library& library) {
  if (instruction.node == nullptr || instruction.node->op != &op::opaque) return;
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    const Slot& result = frame.slots[instruction.outputs[i]];
    if (result.is_tensor())
      check_type(*instruction.node->outputs[i], library.layout(result), frame);
  }
}

void learn(const Instruction& instruction, Frame& frame, const Library& library) {
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    const uint32_t slot = instruction.outputs[i];
    if (!frame.slots[slot].is_tensor()) {
      expect_undefined(slot, *instruction.node->outputs[i], frame);
      continue;
    }
    Learned& learned = frame.learned.of(slot);
    learned = learned_of(slot, Learned::Origin::computed, frame, library);
    check_type(*instruction.node->outputs[i], learned.layout, frame);
    const auto alias = [&](uint32_t other) {
      const Learned& known = frame.learned[other];
      if (other == slot || !known.is_tensor()) return;
      if (learned.root != slot || known.storage != learned.storage) return;
      learned.root = known.root;
      learned.moves = known.moves;
      const std::vector<Move> own = own_moves(instruction, known, frame);
      learned.moves.insert(learned.moves.end(), own.begin(), own.end());
      learned.byte_offset =
          learned.data - known.data + known.byte_offset - moved_bytes(own, frame.first_elements);
    };
    std::ranges::for_each(instruction.inputs, alias);
    std::for_each(instruction.outputs.begin(),
                  instruction.outputs.begin() + static_cast<ptrdiff_t>(i), alias);
  }
}

bool gives_views(const Instruction& instruction, const LearnedSlots& learned) {
  if (instruction.outputs.empty() || instruction.action == Action::relayout) return false;
  return std::ranges::all_of(instruction.outputs, [&](uint32_t slot) {
    return learned[slot].is_tensor() && !instruction.gives(learned[slot].root);
  });
}

bool makes_own_results(const Instruction& instruction, const LearnedSlots& learned) {
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    const Learned& result = learned[instruction.outputs[i]];
    if (instruction.node->outputs[i]->type.is_none()) continue;
    if (!result.is_tensor() || result.root != instruction.outputs[i] || !result.layout.is_dense())
      return false;
  }
  return true;
}

}  // namespace janus::execute
