// See memory_plan.h.
#include "execute/plan/memory_plan.h"

#include <algorithm>
#include <utility>

#include "execute/run/boundary.h"
#include "execute/run/learning.h"
#include "graph/op.h"
#include "ops/structure.h"

namespace janus::execute {

namespace {

/// Operators that are not torch's own might keep what they give.
bool may_keep_results(const Instruction& instruction) {
  return ops::runs_foreign_code(*instruction.node);
}

/// Whether a kernel reads that operand where it writes that result: two tensors of one layout may
/// lie along different dimensions of the space, or one be read at other indices.
bool has_axes_of(const Instruction& instruction, uint32_t operand, uint32_t output) {
  const auto axes = instruction.kernel->axes();
  if (axes.empty()) return true;
  std::vector<uint32_t> tensors;
  for (size_t i = 0; i < instruction.inputs.size(); ++i)
    if (instruction.node->inputs[i]->type.is_tensor()) tensors.push_back(instruction.inputs[i]);
  tensors.insert(tensors.end(), instruction.outputs.begin(), instruction.outputs.end());
  const auto written = std::ranges::find(tensors, output) - tensors.begin();
  for (size_t t = 0; t < tensors.size(); ++t)
    if (tensors[t] == operand &&
        (instruction.kernel->map(t) != nullptr || axes[t] != axes[static_cast<size_t>(written)]))
      return false;
  return true;
}

}  // namespace

MemoryPlan::MemoryPlan(const Code& code, const PlannedCode& planned, const Lifetimes& lifetimes,
                       size_t certain_begin, Frame& frame)
    : code_(code),
      instructions_(planned.instructions),
      lifetimes_(lifetimes),
      certain_begin_(certain_begin),
      frame_(frame),
      sides_(find_sides(planned)),
      leaves_(lifetimes.kept()) {
  choose_places();
  choose_in_place_writes();
  choose_gifts();
  choose_buffers();
}

int64_t MemoryPlan::offset(uint32_t slot) const {
  return buffers_[piece(slot).buffer].offset + learned(slot).byte_offset;
}

Stretch MemoryPlan::stretch(uint32_t slot) const {
  if (place(slot) == Place::cell) return {.root = learned(cell(slot)).root};
  if (place(slot) != Place::arena) return {.root = learned(slot).root};
  if (learned(slot).moves_in_root()) {
    const int64_t whole = buffers_[piece(slot).buffer].offset;
    return {.begin = whole, .end = whole + lifetimes_.of(slot).bytes};
  }
  const int64_t begin = offset(slot);
  return {.begin = begin, .end = begin + learned(slot).layout.span_bytes()};
}

bool MemoryPlan::is_same(uint32_t one, uint32_t other) const {
  return learned(one).root == learned(other).root &&
         learned(one).byte_offset == learned(other).byte_offset &&
         learned(one).moves == learned(other).moves && learned(one).layout == learned(other).layout;
}

bool MemoryPlan::begins_with_root(uint32_t slot) const {
  return learned(slot).byte_offset == 0 && !learned(slot).moves_in_root();
}

std::optional<uint32_t> MemoryPlan::replaced_by(uint32_t slot) const {
  const auto replaced = replacing_.find(slot);
  return replaced == replacing_.end() ? std::nullopt : std::optional(replaced->second);
}

// --- what instructions do with memory

Making MemoryPlan::making(const Instruction& operation) const {
  if (gives_views(operation, frame_.learned)) return Making::view;
  if (operation.outputs.empty() || !makes_own_results(operation, frame_.learned))
    return Making::fresh;
  if (frame_.operations[operation.operation]->can_run_into()) return Making::into;
  const bool has_place = std::ranges::any_of(operation.outputs, [&](uint32_t slot) {
    return is_tensor(slot) && (!lifetimes_.of(slot).escapes || replacing_.contains(slot));
  });
  return has_place && !may_keep_results(operation) ? Making::placed : Making::fresh;
}

bool MemoryPlan::is_given_memory(const Instruction& instruction) const {
  switch (instruction.action) {
    case Action::kernel:
    case Action::relayout:
    case Action::give:
      return true;
    case Action::operation: {
      const Making how = making(instruction);
      return how == Making::into || how == Making::placed;
    }
    default:
      return false;
  }
}

/// Whether it is an operator that may be given its first input's memory for its result.
bool MemoryPlan::changes_first_input(const Instruction& instruction) const {
  return instruction.action == Action::operation && making(instruction) == Making::into &&
         frame_.operations[instruction.operation]->can_run_in_place();
}

/// Whether the operator reads that slot only as what it changes.
bool MemoryPlan::is_changed_in_place(const Instruction& instruction, uint32_t slot) const {
  return changes_first_input(instruction) && instruction.inputs[0] == slot &&
         std::ranges::count(instruction.inputs, slot) == 1;
}

// --- what lies in the arena

void MemoryPlan::choose_places() {
  for (uint32_t slot = 0; slot < frame_.learned.end_slot(); ++slot)
    if (is_tensor(slot))
      pieces_[learned(slot).root].place =
          lifetimes_.of(slot).is_outside ? Place::outside : Place::fresh;
  for (const Instruction& instruction : instructions_) {
    const bool is_given = is_given_memory(instruction);
    for (uint32_t slot : instruction.outputs)
      if (is_given && is_tensor(slot) && !lifetimes_.of(slot).escapes)
        piece(slot).place = Place::arena;
    find_mixed(instruction);
  }
}

void MemoryPlan::find_mixed(const Instruction& instruction) {
  if (instruction.action != Action::operation || making(instruction) == Making::view) return;
  for (uint32_t slot : instruction.outputs)
    if (is_tensor(slot) && !instruction.gives(learned(slot).root)) mixed_.insert(slot);
}

// --- what is written into cells

void MemoryPlan::choose_in_place_writes() {
  std::map<uint32_t, int> commits_of;
  for (const Write& write : code_.commits) ++commits_of[write.slot];
  for (const Write& write : code_.commits) {
    if (commits_of[write.slot] != 1 || !may_write_in_place(write)) continue;
    piece(write.slot).place = Place::cell;
    piece(write.slot).cell = cell_slot(code_, write.cell);
    in_place_.insert(write.slot);
  }
}

bool MemoryPlan::may_write_in_place(const Write& write) const {
  const uint32_t cell = cell_slot(code_, write.cell);
  if (!is_tensor(write.slot) || !is_tensor(cell)) return false;
  if (place(write.slot) != Place::arena || learned(write.slot).root != write.slot) return false;
  const Layout& layout = learned(cell).layout;
  if (learned(write.slot).layout != layout || !layout.is_dense()) return false;
  return std::ranges::all_of(lifetimes_.of(write.slot).makers, [&](size_t writer) {
    return writer >= certain_begin_ && may_write_at(writer, write.slot, cell);
  });
}

bool MemoryPlan::may_write_at(size_t writer, uint32_t output, uint32_t cell) const {
  const Instruction& instruction = instructions_[writer];
  if (instruction.action == Action::give && is_same(instruction.inputs[0], cell)) return true;
  return (instruction.action == Action::give || instruction.action == Action::kernel ||
          changes_first_input(instruction)) &&
         old_contents_unused_after(writer, output, cell);
}

/// Whether no instruction after `writer` reads the cell's memory, and `writer` itself reads each
/// element only where it then writes.
bool MemoryPlan::old_contents_unused_after(size_t writer, uint32_t output, uint32_t cell) const {
  for (const uint32_t slot : lifetimes_.of(cell).used)
    for (const size_t position : lifetimes_.uses(slot)) {
      if (position < writer || exclude_each_other(position, writer)) continue;
      if (position > writer || !reads_where_it_writes(instructions_[writer], slot, output, cell))
        return false;
    }
  return true;
}

bool MemoryPlan::reads_where_it_writes(const Instruction& instruction, uint32_t slot,
                                       uint32_t output, uint32_t cell) const {
  return is_same(slot, cell) &&
         (instruction.action == Action::kernel ? has_axes_of(instruction, slot, output)
                                               : is_changed_in_place(instruction, slot));
}

/// Whether the two are on different sides of one `if`.
bool MemoryPlan::exclude_each_other(size_t one, size_t other) const {
  if (one >= sides_.size() || other >= sides_.size()) return false;
  return sides_[one].branch != 0 && sides_[one].branch == sides_[other].branch &&
         sides_[one].side != sides_[other].side;
}

// --- what leaves the graph

void MemoryPlan::choose_gifts() {
  const std::set<uint32_t> written = written_roots();
  give_rebound(give_results(written));
  commit(written);
}

/// The memory of the cells that the run writes.
std::set<uint32_t> MemoryPlan::written_roots() const {
  std::set<uint32_t> written;
  for (const Write& write : code_.commits) {
    const uint32_t cell = cell_slot(code_, write.cell);
    if (is_tensor(cell)) written.insert(learned(cell).root);
  }
  return written;
}

/// Gives the roots of the results.
std::set<uint32_t> MemoryPlan::give_results(const std::set<uint32_t>& written) {
  std::set<uint32_t> given, given_roots;
  for (size_t i = 0; i < code_.body.results.size(); ++i) {
    const uint32_t slot = code_.body.results[i];
    if (is_tensor(slot))
      if (auto strides = other_strides(code_, i, learned(slot).layout, frame_)) {
        leaving_.results.push_back(clone(slot, std::move(*strides)));
        continue;
      }
    const bool again = !given.insert(slot).second;
    const bool copied =
        is_tensor(slot) && (again || written.contains(learned(slot).root) || mixed_.contains(slot));
    leaving_.results.push_back(copied ? clone(slot) : slot);
    if (!is_tensor(slot)) continue;
    if (!copied) leaves_.insert(slot);
    given_roots.insert(learned(slot).root);
  }
  return given_roots;
}

/// `given`: roots of what leaves already.
void MemoryPlan::give_rebound(std::set<uint32_t> given) {
  for (const Write& write : code_.rebinds) {
    const uint32_t slot = write.slot;
    leaving_.replaced.push_back(new_slot());
    if (!is_tensor(slot)) {
      leaving_.rebound.push_back(slot);
      continue;
    }
    const Layout& layout = learned(slot).layout;
    const auto strides = rebound_strides(write, layout.sizes, frame_);
    const bool own = given.insert(learned(slot).root).second && place(slot) != Place::outside &&
                     !mixed_.contains(slot) && layout.has_strides(strides);
    leaving_.rebound.push_back(own ? slot : clone(slot, strides));
    if (!own) continue;
    leaves_.insert(slot);
    if (may_replace(slot)) replacing_.emplace(slot, leaving_.replaced.back());
  }
}

void MemoryPlan::commit(const std::set<uint32_t>& written) {
  for (const Write& write : code_.commits) {
    if (in_place_.contains(write.slot) || !is_tensor(write.slot)) continue;
    const uint32_t cell = cell_slot(code_, write.cell);
    if (is_same(write.slot, cell)) continue;
    // Another cell's old contents may be overwritten by then.
    const bool moved = written.contains(learned(write.slot).root);
    leaving_.commits.push_back({cell, moved ? clone(write.slot) : write.slot});
  }
}

/// Whether the value may be computed right into the tensor that it takes the place of.
bool MemoryPlan::may_replace(uint32_t slot) const {
  if (learned(slot).root != slot) return false;
  if (place(slot) != Place::fresh || lifetimes_.of(slot).begin() < certain_begin_) return false;
  return std::ranges::all_of(lifetimes_.of(slot).makers, [&](size_t position) {
    const Instruction& made = instructions_[position];
    return made.action != Action::operation ||
           (makes_own_results(made, frame_.learned) && !may_keep_results(made));
  });
}

uint32_t MemoryPlan::clone(uint32_t slot) {
  const Layout& layout = learned(slot).layout;
  return clone(slot, layout.is_dense() ? layout.strides : contiguous_strides(layout.sizes));
}

uint32_t MemoryPlan::clone(uint32_t slot, std::vector<int64_t> strides) {
  Gift gift;
  gift.value = slot;
  gift.clone = new_slot();
  gift.layout = learned(slot).layout;
  gift.layout.strides = std::move(strides);
  // A view may be made in the certain part although its memory is there before.
  gift.early = place(slot) == Place::outside || lifetimes_.uses(slot).front() < certain_begin_;
  leaving_.gifts.push_back(std::move(gift));
  return leaving_.gifts.back().clone;
}

uint32_t MemoryPlan::new_slot() {
  frame_.slots.emplace_back();
  return static_cast<uint32_t>(frame_.slots.size() - 1);
}

// --- buffers of the arena

void MemoryPlan::choose_buffers() {
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& instruction = instructions_[i];
    std::set<size_t> taken;  // buffers of the instruction's other results
    for (uint32_t slot : instruction.outputs) {
      if (!is_tensor(slot) || learned(slot).root != slot) continue;
      Piece& made = piece(slot);
      if (made.place != Place::arena || made.buffer != SIZE_MAX) continue;
      const Lifetime& life = lifetimes_.of(slot);
      const size_t reused = reusable_buffer(i, slot);
      if (reused != SIZE_MAX && taken.insert(reused).second) {
        made.buffer = reused;
        buffers_[reused].last = std::max(buffers_[reused].last, life.last_use);
      } else {
        made.buffer = buffers_.size();
        buffers_.push_back({std::max<int64_t>(life.bytes, 1), life.begin(), life.last_use});
      }
    }
  }
  arena_bytes_ = place_buffers(buffers_);
}

/// The buffer of an operand of instruction `position`, a kernel or an operator in place, that
/// nothing needs afterwards and that can hold its result `output`.
size_t MemoryPlan::reusable_buffer(size_t position, uint32_t output) const {
  const Instruction& instruction = instructions_[position];
  const bool is_kernel = instruction.action == Action::kernel;
  if (!is_kernel && !changes_first_input(instruction)) return SIZE_MAX;
  for (uint32_t slot : instruction.inputs) {
    if (!is_tensor(slot) || !(is_kernel || is_changed_in_place(instruction, slot))) continue;
    if (place(slot) != Place::arena || buffers_[piece(slot).buffer].last != position) continue;
    if (learned(slot).layout != learned(output).layout || !begins_with_root(slot) ||
        lifetimes_.of(slot).bytes != lifetimes_.of(output).bytes)
      continue;
    if (is_read_alike(instruction, slot, output)) return piece(slot).buffer;
  }
  return SIZE_MAX;
}

/// Whether the instruction walks in the same way, that of its result, over every operand in the
/// buffer of operand `slot`.
bool MemoryPlan::is_read_alike(const Instruction& instruction, uint32_t slot,
                               uint32_t output) const {
  return std::ranges::all_of(instruction.inputs, [&](uint32_t other) {
    if (!is_tensor(other) || piece(other).buffer != piece(slot).buffer) return true;
    if (instruction.action != Action::kernel) return other == slot;
    return learned(other).layout == learned(slot).layout && begins_with_root(other) &&
           has_axes_of(instruction, other, output);
  });
}

}  // namespace janus::execute
