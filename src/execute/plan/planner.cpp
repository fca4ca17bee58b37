// See planner.h.
#include "execute/plan/planner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "execute/plan/beside.h"
#include "execute/plan/certainty.h"
#include "execute/plan/lifetimes.h"
#include "execute/plan/memory_plan.h"
#include "execute/plan/relayout.h"
#include "execute/plan/sides.h"

namespace janus::execute {

namespace {

/// Whether the step's index is that of an instruction.
bool runs_instruction(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::operation_into:
    case Step::Kind::operation_fresh:
    case Step::Kind::look:
    case Step::Kind::number:
    case Step::Kind::size:
    case Step::Kind::item:
    case Step::Kind::guard:
    case Step::Kind::identity:
    case Step::Kind::control:
    case Step::Kind::container:
      return true;
    case Step::Kind::operation_placed:
    case Step::Kind::beside:
    case Step::Kind::kernel:
    case Step::Kind::kernels:
    case Step::Kind::skip:
    case Step::Kind::hand:
    case Step::Kind::repoint:
    case Step::Kind::share:
    case Step::Kind::allocate:
    case Step::Kind::adopt:
    case Step::Kind::copy:
    case Step::Kind::release:
      return false;
  }
  TORCHJANUS_CHECK(false, "plan: no kind of step");
}

/// Keeps those instructions that steps refer to: of kernels and views they know all there is.
void forget_other_instructions(Plan& plan) {
  std::vector<bool> is_needed(plan.code.instructions.size());
  for (const Step& step : plan.steps)
    if (runs_instruction(step.kind)) is_needed[step.index] = true;
  for (const Plan::Placed& call : plan.placed) is_needed[call.instruction] = true;
  for (const Plan::Beside& group : plan.besides)
    std::fill_n(is_needed.begin() + group.first, group.count, true);
  std::vector<Instruction> needed;
  needed.reserve(static_cast<size_t>(std::ranges::count(is_needed, true)));
  std::vector<uint32_t> places(is_needed.size());
  for (size_t i = 0; i < is_needed.size(); ++i) {
    places[i] = static_cast<uint32_t>(needed.size());
    if (is_needed[i]) needed.push_back(std::move(plan.code.instructions[i]));
  }
  for (Step& step : plan.steps)
    if (runs_instruction(step.kind)) step.index = places[step.index];
  for (Plan::Placed& call : plan.placed) call.instruction = places[call.instruction];
  for (Plan::Beside& group : plan.besides) group.first = places[group.first];
  plan.code.instructions = std::move(needed);
}

class Planner {
 public:
  /// The plan has its instructions already. All that is decided about them is decided here, each
  /// from what was before; find_groups_beside still moves some.
  Planner(const Code& code, Plan& plan, Library& library, Frame& frame)
      : code_(code),
        plan_(plan),
        instructions_(plan.code.instructions),
        library_(library),
        frame_(frame),
        beside_until_(find_groups_beside(plan.code, frame)),
        lifetimes_(code_, plan.code, beside_until_, frame.learned),
        certain_(find_certain_part(code_, plan.code, lifetimes_, beside_until_, library, frame)),
        memory_(code_, plan.code, lifetimes_, certain_.begin, frame) {}

  void make(const FindArena& find_arena) {
    hand_out();
    make_arena(find_arena);
    part_groups();
    emit();
    draw();
    forget_other_instructions(plan_);
    frame_.slots.shrink_to_fit();
    for (uint32_t slot : permanent_) frame_.borrowed.insert(library_.storage(frame_.slots[slot]));
  }

 private:
  const Learned& learned(uint32_t slot) const { return frame_.learned[slot]; }
  bool is_tensor(uint32_t slot) const { return learned(slot).is_tensor(); }

  void hand_out() {
    plan_.result_slots = memory_.leaving().results;
    plan_.rebound_slots = memory_.leaving().rebound;
    plan_.replaced_slots = memory_.leaving().replaced;
  }

  /// What lies in the arena is made once, and is there in every run.
  void make_arena(const FindArena& find_arena) {
    plan_.arena_bytes = memory_.arena_bytes();
    plan_.arena = find_arena(plan_.arena_bytes);
    for (uint32_t slot = 0; slot < frame_.learned.end_slot(); ++slot) {
      if (!has_fixed_address(slot)) continue;
      frame_.slots[slot] = library_.over_memory(address(slot), learned(slot).layout);
      permanent_.insert(slot);
    }
  }

  /// For reports.
  void draw() {
    for (size_t i = 0; i < instructions_.size(); ++i) {
      const Instruction& instruction = instructions_[i];
      plan_.picture.order.push_back(instruction.node);
      for (size_t k = 0; k < instruction.outputs.size(); ++k) {
        const uint32_t slot = instruction.outputs[k];
        if (!memory_.is_made_in_arena(slot)) continue;
        const Lifetime& life = lifetimes_.of(slot);
        if (life.begin() != i) continue;  // on another side of an `if` as well
        plan_.picture.memory.push_back({.maker = instruction.node,
                                        .output = k,
                                        .offset = memory_.offset(slot),
                                        .bytes = life.bytes,
                                        .first = i,
                                        .last = std::min(life.last_use, instructions_.size() - 1)});
      }
    }
  }

  /// Whether its tensor lies in one place of the arena in every run.
  bool has_fixed_address(uint32_t slot) const {
    return is_tensor(slot) && memory_.place(slot) == Place::arena && !learned(slot).moves_in_root();
  }

  char* address(uint32_t slot) const { return plan_.arena + memory_.offset(slot); }

  /// Operators that can't all be given memory to write into are called one by one after all.
  void part_groups() {
    for (size_t first = 0, end = 0; first < instructions_.size(); first = end) {
      end = beside_until_[first];
      if (end == first + 1) continue;
      const std::span group = std::span(instructions_).subspan(first, end - first);
      const bool all_write = std::ranges::all_of(group, [&](const Instruction& operation) {
        return memory_.making(operation) == Making::into;
      });
      for (size_t i = first; i < end && !all_write; ++i) beside_until_[i] = i + 1;
    }
  }

  // --- steps

  void step(Step::Kind kind, size_t index) {
    plan_.steps.push_back({kind, static_cast<uint32_t>(index)});
    plan_.picture.steps.push_back(emitted_);
  }

  void emit() {
    const size_t end = instructions_.size();
    emit(0, certain_.begin);
    emit_early_copies();
    for (size_t i = certain_.begin; i < end; ++i)
      if (memory_.is_given_memory(instructions_[i])) emit_allocations(i);
    for (const size_t position : certain_.looked_at) step(Step::Kind::look, position);
    plan_.first_write = plan_.steps.size();
    emit(certain_.begin, end);
    emitted_ = nullptr;
    emit_late_copies();
    for (const auto& [cell, value] : memory_.leaving().commits) emit_copy(cell, value);
    for (uint32_t slot = 0; slot < frame_.slots.size(); ++slot)
      if (!permanent_.contains(slot) && !is_constant(slot)) plan_.transient.push_back(slot);
  }

  bool is_constant(uint32_t slot) const {
    return std::any_of(code_.constants.begin(), code_.constants.end(),
                       [&](const Constant& constant) { return constant.slot == slot; }) ||
           std::any_of(code_.objects.begin(), code_.objects.end(),
                       [&](const auto& object) { return object.first == slot; });
  }

  void emit(size_t begin, size_t end) {
    for (size_t i = begin; i < end;) {
      emitted_ = instructions_[i].node;
      if (instructions_[i].action == Action::kernel) {
        std::vector<Plan::Call> calls = calls_together(i, end);
        const size_t first = std::exchange(i, i + calls.size());
        if (calls.size() == 1)
          emit_kernel(first, std::move(calls.front()));
        else
          emit_batch(first, std::move(calls));
      } else {
        emit(i++);
      }
    }
  }

  void emit(size_t position) {
    const Instruction& instruction = instructions_[position];
    switch (instruction.action) {
      case Action::number:
        step(Step::Kind::number, position);
        break;
      case Action::dimension:
        TORCHJANUS_CHECK(false, "plan: a size that only the run knows");
      case Action::size:
        step(Step::Kind::size, position);
        break;
      case Action::item:
        step(Step::Kind::item, position);
        break;
      case Action::guard:
        step(Step::Kind::guard, position);
        break;
      case Action::kernel:
        TORCHJANUS_CHECK(false, "plan: kernels are emitted by themselves");
      case Action::operation:
        if (first_beside(beside_until_, position) == position) emit_operation(position);
        break;
      case Action::relayout:
        emit_own_allocations(position);
        emit_copy(instruction.outputs[0], instruction.inputs[0]);
        break;
      case Action::skip:
        emit_skip(position);
        break;
      case Action::give:
        if (!instruction.outputs.empty()) emit_give(position);
        break;
      case Action::container:
        step(Step::Kind::container, position);
        break;
      case Action::identity:
        step(Step::Kind::identity, position);
        break;
      case Action::heap:
      case Action::choose:
      case Action::rows:
      case Action::loop:
      case Action::call:
        step(Step::Kind::control, position);
    }
    end_instruction(position);
  }

  void end_instruction(size_t position) {
    emit_releases(position);
    while (!open_sides_.empty() && open_sides_.back().end == position) {
      Plan::Skip& skip = plan_.skips[open_sides_.back().skip];
      skip.steps = plan_.steps.size() - open_sides_.back().first_step;
      open_sides_.pop_back();
    }
  }

  void emit_skip(size_t position) {
    const Instruction& instruction = instructions_[position];
    step(Step::Kind::skip, plan_.skips.size());
    open_sides_.push_back({.end = position + instruction.side_size,
                           .skip = plan_.skips.size(),
                           .first_step = plan_.steps.size()});
    plan_.skips.push_back({instruction.inputs[0], instruction.wanted, 0});
  }

  void emit_give(size_t position) {
    const uint32_t from = instructions_[position].inputs[0];
    const uint32_t to = instructions_[position].outputs[0];
    if (!is_tensor(to)) {
      plan_.hands.push_back({to, from});
      return step(Step::Kind::hand, plan_.hands.size() - 1);
    }
    emit_own_allocations(position);
    emit_adoptions(position);
    const bool is_there =
        memory_.place(to) == Place::cell && memory_.is_same(from, memory_.cell(to));
    if (!is_there) emit_copy(to, from);
  }

  void emit_operation(size_t position) {
    const Instruction& instruction = instructions_[position];
    if (beside_until_[position] > position + 1) return emit_beside(position);
    switch (memory_.making(instruction)) {
      case Making::view:
        return emit_views(instruction);
      case Making::into:
        emit_own_allocations(position);
        emit_adoptions(position);
        return step(Step::Kind::operation_into, position);
      case Making::placed:
        return emit_placed(position);
      case Making::fresh:
        return step(Step::Kind::operation_fresh, position);
    }
  }

  /// All of a group at once.
  void emit_beside(size_t first) {
    const size_t end = beside_until_[first];
    for (size_t i = first; i < end; ++i) emit_own_allocations(i);
    plan_.besides.push_back(
        {.first = static_cast<uint32_t>(first), .count = static_cast<uint32_t>(end - first)});
    step(Step::Kind::beside, plan_.besides.size() - 1);
  }

  void emit_placed(size_t position) {
    const Instruction& instruction = instructions_[position];
    Plan::Placed call;
    call.instruction = static_cast<uint32_t>(position);
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      const uint32_t slot = instruction.outputs[i];
      call.made.push_back(static_cast<uint32_t>(frame_.slots.size()));
      frame_.slots.emplace_back();
      if (!is_tensor(slot)) continue;
      const bool replaces = memory_.replaced_by(slot).has_value();
      if (memory_.place(slot) != Place::arena && !replaces) continue;
      const int64_t bytes = learned(slot).layout.span_bytes();
      const auto before =
          std::count_if(call.placements.begin(), call.placements.end(),
                        [&](const Placement& other) { return other.bytes == bytes; });
      if (replaces) call.moving.push_back(call.placements.size());
      call.placements.push_back({replaces ? nullptr : address(slot), bytes, before, i});
    }
    plan_.placed.push_back(std::move(call));
    step(Step::Kind::operation_placed, plan_.placed.size() - 1);
  }

  /// Views need no call: those of the arena are there already, others are moved to where their
  /// root is. What leaves the graph must be a tensor of its own.
  void emit_views(const Instruction& instruction) {
    for (uint32_t slot : instruction.outputs) {
      if (permanent_.contains(slot)) continue;
      const Learned& view = learned(slot);
      plan_.views.push_back({slot, view.root, view.byte_offset, view.moves});
      if (memory_.leaves(slot)) {
        step(Step::Kind::share, plan_.views.size() - 1);
      } else {
        frame_.slots[slot] = library_.over_memory(nullptr, learned(slot).layout);
        permanent_.insert(slot);
        step(Step::Kind::repoint, plan_.views.size() - 1);
      }
    }
  }

  /// Memory is asked for where that may fail: the certain part has it all when it begins.
  void emit_own_allocations(size_t position) {
    if (position < certain_.begin) emit_allocations(position);
  }

  void emit_allocations(size_t position) {
    const Instruction& instruction = instructions_[position];
    const bool is_placed =
        instruction.action == Action::operation && memory_.making(instruction) == Making::placed;
    for (uint32_t slot : instruction.outputs) {
      if (!is_tensor(slot) || memory_.place(slot) != Place::fresh) continue;
      const std::optional<uint32_t> replaced = memory_.replaced_by(slot);
      if (is_placed && !replaced) continue;
      if (position >= certain_.begin && !allocated_.insert(slot).second) continue;
      emit_allocation(slot, replaced, learned(slot).layout);
    }
  }

  void emit_allocation(uint32_t slot, std::optional<uint32_t> replaced, const Layout& layout) {
    plan_.allocations.push_back({slot, replaced, layout});
    step(Step::Kind::allocate, plan_.allocations.size() - 1);
  }

  /// What is written in place is the cell's tensor.
  void emit_adoptions(size_t position) {
    for (uint32_t slot : instructions_[position].outputs) {
      if (!is_tensor(slot) || memory_.place(slot) != Place::cell) continue;
      plan_.adoptions.push_back({slot, memory_.cell(slot)});
      step(Step::Kind::adopt, plan_.adoptions.size() - 1);
    }
  }

  void emit_kernel(size_t position, Plan::Call call) {
    emit_own_allocations(position);
    emit_adoptions(position);
    plan_.calls.push_back(std::move(call));
    step(Step::Kind::kernel, plan_.calls.size() - 1);
    end_instruction(position);
  }

  Plan::Call call_of(size_t position) {
    const Instruction& instruction = instructions_[position];
    std::vector<const Layout*> inputs;  // null for numbers
    for (uint32_t slot : instruction.inputs)
      inputs.push_back(is_tensor(slot) ? &learned(slot).layout : nullptr);
    std::vector<Layout> outputs;
    for (uint32_t slot : instruction.outputs) outputs.push_back(learned(slot).layout);
    Plan::Call call{KernelCall(instruction, inputs, outputs), {}};
    call.call.place();
    for (uint32_t k = 0; k < call.call.tensor_count(); ++k) {
      const uint32_t slot = call.call.slot(k);
      if (has_fixed_address(slot))
        call.call.set_data(k, address(slot));
      else
        call.patches.push_back({k, slot});
    }
    return call;
  }

  // --- kernels that do not need each other

  /// The kernel at `begin`, and as many of those behind it as may run in any order with it.
  std::vector<Plan::Call> calls_together(size_t begin, size_t end) {
    std::vector<Plan::Call> calls;
    std::vector<Stretch> read, written;
    for (size_t i = begin; i < end && instructions_[i].action == Action::kernel; ++i) {
      const bool is_first = i == begin;
      if (!is_first && (ends_side(i - 1) || needs_order(instructions_[i], read, written))) break;
      Plan::Call call = call_of(i);
      const bool can_be_joined = call.call.placed() != nullptr;
      if (is_first || can_be_joined) calls.push_back(std::move(call));
      if (!can_be_joined) break;
      for (uint32_t slot : instructions_[i].inputs)
        if (is_tensor(slot)) read.push_back(memory_.stretch(slot));
      for (uint32_t slot : instructions_[i].outputs) written.push_back(memory_.stretch(slot));
    }
    return calls;
  }

  bool ends_side(size_t position) const {
    return !open_sides_.empty() && open_sides_.back().end == position;
  }

  /// Whether it reads what others write, or writes what they read or write.
  bool needs_order(const Instruction& kernel, const std::vector<Stretch>& read,
                   const std::vector<Stretch>& written) const {
    const auto meets = [&](uint32_t slot, const std::vector<Stretch>& all) {
      const Stretch own = memory_.stretch(slot);
      return std::ranges::any_of(all, [&](const Stretch& other) { return own.overlaps(other); });
    };
    return std::ranges::any_of(
               kernel.inputs,
               [&](uint32_t slot) { return is_tensor(slot) && meets(slot, written); }) ||
           std::ranges::any_of(kernel.outputs, [&](uint32_t slot) {
             return meets(slot, read) || meets(slot, written);
           });
  }

  void emit_batch(size_t begin, std::vector<Plan::Call> calls) {
    std::vector<KernelCall> kernels;
    std::vector<Plan::Patch> patches;
    for (uint32_t k = 0; k < calls.size(); ++k) {
      emit_own_allocations(begin + k);
      emit_adoptions(begin + k);
      for (Plan::Patch patch : calls[k].patches) {
        patch.call = k;
        patches.push_back(patch);
      }
      kernels.push_back(std::move(calls[k].call));
    }
    plan_.batches.push_back({KernelBatch(std::move(kernels)), std::move(patches)});
    step(Step::Kind::kernels, plan_.batches.size() - 1);
    for (size_t k = 0; k < calls.size(); ++k) end_instruction(begin + k);
  }

  void emit_releases(size_t position) {
    const Instruction& instruction = instructions_[position];
    for (uint32_t slot : instruction.dead)
      if (!is_tensor(slot)) step(Step::Kind::release, slot);
    for (uint32_t slot : instruction.operands()) emit_release(slot, position);
    for (uint32_t slot : instruction.outputs) emit_release(slot, position);
  }

  /// Memory of their own that operators made is given back after its last use.
  void emit_release(uint32_t slot, size_t position) {
    if (!is_tensor(slot) || permanent_.contains(slot)) return;
    const Lifetime& lifetime = lifetimes_.of(slot);
    if (memory_.place(slot) != Place::fresh || lifetime.last_use != position) return;
    if (!released_.insert(slot).second) return;
    step(Step::Kind::release, slot);
    // Other tensors over the same memory hold it too.
    for (const uint32_t other : lifetime.used)
      if (!permanent_.contains(other) && released_.insert(other).second)
        step(Step::Kind::release, other);
  }

  // --- what leaves the graph

  void emit_early_copies() {
    for (const Gift& gift : memory_.leaving().gifts) {
      emit_allocation(gift.clone, std::nullopt, gift.layout);
      if (gift.early) emit_copy(gift.clone, gift.value);
    }
  }

  void emit_late_copies() {
    for (const Gift& gift : memory_.leaving().gifts)
      if (!gift.early) emit_copy(gift.clone, gift.value);
  }

  void emit_copy(uint32_t to, uint32_t from) {
    plan_.copies.push_back({to, from});
    step(Step::Kind::copy, plan_.copies.size() - 1);
  }

  struct OpenSide {
    size_t end = 0;  ///< its last instruction
    size_t skip = 0;
    size_t first_step = 0;
  };

  const Code& code_;
  Plan& plan_;
  const std::vector<Instruction>& instructions_;
  Library& library_;
  Frame& frame_;
  std::vector<size_t> beside_until_;  // by instruction: end of those that it runs beside
  const Lifetimes lifetimes_;
  const CertainPart certain_;
  const MemoryPlan memory_;
  const graph::Node* emitted_ = nullptr;  ///< what steps are being made for
  std::set<uint32_t> permanent_;          // slots whose tensors belong to the plan
  // While steps are emitted:
  std::vector<OpenSide> open_sides_;
  std::set<uint32_t> allocated_;  // in the certain part
  std::set<uint32_t> released_;
};

}  // namespace

Plan make_plan(const Code& code, Library& library, Frame& frame, const FindArena& find_arena) {
  Plan plan{.code = choose_layouts(code, frame)};
  compute_numbers_first(plan.code, library, frame);
  open_branches(code, plan.code, frame, library);
  Planner(code, plan, library, frame).make(find_arena);
  return plan;
}

}  // namespace janus::execute
