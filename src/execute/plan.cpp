// Runs a plan: the loop that every call of a converted function ends up in.
#include "execute/plan/plan.h"

#include <algorithm>
#include <utility>

#include "base/fault.h"
#include "base/options.h"
#include "base/steady_time.h"
#include "base/thread_pool.h"
#include "base/thread_time.h"
#include "execute/plan/beside.h"
#include "execute/run/container_call.h"
#include "execute/run/ordinary_run.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

/// For tests: the place where an operator fails on demand.
void operation_may_fail(const Frame& frame) {
  if (!frame.is_certain) fault_point(Fault::operation);
}

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

}  // namespace

void Plan::forget_other_instructions() {
  std::vector<bool> is_needed(planned_.instructions.size());
  for (const Step& step : steps_)
    if (runs_instruction(step.kind)) is_needed[step.index] = true;
  for (const Placed& call : placed_) is_needed[call.instruction] = true;
  for (const Beside& group : besides_)
    std::fill_n(is_needed.begin() + group.first, group.count, true);
  std::vector<Instruction> needed;
  needed.reserve(static_cast<size_t>(std::ranges::count(is_needed, true)));
  std::vector<uint32_t> places(is_needed.size());
  for (size_t i = 0; i < is_needed.size(); ++i) {
    places[i] = static_cast<uint32_t>(needed.size());
    if (is_needed[i]) needed.push_back(std::move(planned_.instructions[i]));
  }
  for (Step& step : steps_)
    if (runs_instruction(step.kind)) step.index = places[step.index];
  for (Placed& call : placed_) call.instruction = places[call.instruction];
  for (Beside& group : besides_) group.first = places[group.first];
  planned_.instructions = std::move(needed);
}

/// An operator may compute a result in several ways, which give dimensions of one element different
/// strides: the memory is the same. Where a run can't be given up any more, what really lies
/// otherwise is copied.
bool Plan::settle_layout(const Instruction& instruction, size_t output, Slot& made,
                         Library& library, Frame& frame) const {
  if (!made.is_tensor()) return true;
  const Layout& wanted = frame.learned[instruction.outputs[output]].layout;
  if (library.has_layout(made, wanted)) return true;
  const Layout layout = library.layout(made);
  const bool has_same_elements = layout.sizes == wanted.sizes && layout.dtype == wanted.dtype;
  if (has_same_elements && layout.has_strides(wanted.strides)) {
    made = library.share(made, 0, wanted);
    return true;
  }
  if (has_same_elements && (instruction.is_relaid || frame.is_certain)) {
    Slot copy = library.allocate(wanted);
    library.copy(copy, made);
    made = std::move(copy);
    return true;
  }
  give_up_as_lying_otherwise(*instruction.node, frame);
  return false;
}

bool Plan::run_fresh(const Instruction& instruction, Library& library, Frame& frame) {
  frame.running = instruction.node;
  frame.operations[instruction.operation]->run(
      {frame.slots.data(), instruction.inputs, instruction.outputs});
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    Slot& made = frame.slots[instruction.outputs[i]];
    if (!settle_layout(instruction, i, made, library, frame)) return false;
  }
  return true;
}

namespace {

bool lies_in_a_place(std::span<const Placement> placements, const void* data) {
  return std::ranges::any_of(placements,
                             [&](const Placement& each) { return each.memory == data; });
}

/// Into memory of its own.
void move_away(Slot& made, Layout layout, Library& library) {
  if (!layout.is_dense()) layout.strides = contiguous_strides(layout.sizes);
  Slot moved = library.allocate(layout);
  library.copy(moved, made);
  made = std::move(moved);
}

}  // namespace

/// Copies the results that do not lie where and how they are planned to. Those that lie where one
/// is planned to are moved out of the way first.
bool Plan::put_into_place(const Placed& call, Library& library, Frame& frame) const {
  const Instruction& instruction = planned_.instructions[call.instruction];
  std::vector<std::pair<uint32_t, Slot>> copies;
  for (const Placement& placement : call.placements) {
    const uint32_t slot = instruction.outputs[placement.output];
    Slot& made = frame.slots[call.made[placement.output]];
    const Layout& wanted = frame.learned[slot].layout;
    const void* data = library.data(made);
    if (data == placement.memory && library.has_layout(made, wanted)) continue;
    Layout layout = library.layout(made);
    if (layout.sizes != wanted.sizes || layout.dtype != wanted.dtype) {
      return settle_layout(instruction, placement.output, made, library, frame);
    }
    if (data == placement.memory && layout.has_strides(wanted.strides)) continue;
    if (lies_in_a_place(call.placements, data)) move_away(made, std::move(layout), library);
    copies.emplace_back(slot, made);
  }
  for (const auto& [slot, made] : copies) library.copy(frame.slots[slot], made);
  return true;
}

/// A result that has no place may have been made in that of another one of its size.
void Plan::leave_places(const Placed& call, Library& library, Frame& frame) {
  for (size_t i = 0; i < call.made.size(); ++i) {
    Slot& made = frame.slots[call.made[i]];
    const auto is_its_own = [&](const Placement& placement) { return placement.output == i; };
    if (!made.is_tensor() || std::ranges::any_of(call.placements, is_its_own)) continue;
    const void* data = library.data(made);
    if (data != nullptr && lies_in_a_place(call.placements, data))
      move_away(made, library.layout(made), library);
  }
}

bool Plan::run_placed(Placed& call, Library& library, Frame& frame) {
  const Instruction& instruction = planned_.instructions[call.instruction];
  Slot* const slots = frame.slots.data();
  frame.running = instruction.node;
  for (const size_t i : call.moving) {
    Placement& placement = call.placements[i];
    placement.memory = library.data(slots[instruction.outputs[placement.output]]);
  }
  library.run_placed(*frame.operations[instruction.operation],
                     {slots, instruction.inputs, call.made}, call.placements);
  leave_places(call, library, frame);
  if (!put_into_place(call, library, frame)) return false;
  for (const Placement& placement : call.placements) slots[call.made[placement.output]].clear();
  for (size_t i = 0; i < call.made.size(); ++i) {
    Slot& made = slots[call.made[i]];
    if (made.is_empty()) continue;
    if (!settle_layout(instruction, i, made, library, frame)) return false;
    slots[instruction.outputs[i]] = std::move(made);
  }
  return true;
}

void Plan::run_batch(Batch& batch, Library& library, Frame& frame) {
  std::vector<KernelCall>& calls = batch.kernels.calls();
  for (const Patch& patch : batch.patches)
    calls[patch.call].set_data(patch.operand, library.data(frame.slots[patch.slot]));
  frame.running = &calls.back().node();
  batch.kernels.run(frame.slots.data());
}

void Plan::run_group(Beside& group, Library& library, Frame& frame) const {
  constexpr int timed_runs = 8;
  std::array<OperationCall, most_beside> calls;
  for (uint32_t i = 0; i < group.count; ++i) {
    const Instruction& instruction = planned_.instructions[group.first + i];
    calls[i] = {frame.operations[instruction.operation].get(),
                {frame.slots.data(), instruction.inputs, instruction.outputs}};
    frame.running = instruction.node;
  }
  const std::span<const OperationCall> all(calls.data(), group.count);
  const auto run = [&](bool beside) {
    if (beside) return library.run_beside(all);
    for (const OperationCall& call : all) call.operation->run_into(call.operands);
  };
  const int threads = thread_count();
  if (std::exchange(group.threads, threads) != threads) group.runs = 0;
  if (threads == 1) return run(false);
  if (group.runs == timed_runs) return run(group.seconds[1] < group.seconds[0]);
  const bool beside = group.runs % 2 == 1;
  const double start = steady_seconds();
  run(beside);
  const double taken = steady_seconds() - start;
  double& least = group.seconds[beside ? 1 : 0];
  least = group.runs < 2 ? taken : std::min(least, taken);
  ++group.runs;
}

bool Plan::run(Library& library, Frame& frame, std::span<Slot> replaceable) {
  for (size_t i = 0; i < replaceable.size(); ++i)
    frame.slots[replaced_slots_[i]] = std::move(replaceable[i]);
  if (!run_steps(0, first_write_, library, frame)) return false;
  frame.is_certain = true;
  library.enter_certain_part();
  const bool done = run_steps(first_write_, steps_.size(), library, frame);
  TORCHJANUS_CHECK(done, "plan: a step has failed that can't fail");
  for (const Write& write : code_.commits)
    library.bump_version(frame.slots[cell_slot(code_, write.cell)], writes_of(write, frame));
  return true;
}

bool Plan::run_steps(size_t begin, size_t end, Library& library, Frame& frame) {
  const bool timed = log_enabled("time");
  if (timed) times_.resize(steps_.size());
  for (size_t i = begin; i < end; ++i) {
    if (steps_[i].kind == Step::Kind::skip) {
      const Skip& skip = skips_[steps_[i].index];
      if (guard_holds(frame.slots[skip.condition], library) != skip.wanted) i += skip.steps;
      continue;
    }
    const double start = timed ? thread_seconds() : 0;
    if (!run(steps_[i], library, frame)) return false;
    if (!timed) continue;
    const double taken = thread_seconds() - start;
    times_[i] = times_[i] == 0 ? taken : std::min(times_[i], taken);
  }
  return true;
}

/// A new tensor, or what can be made of the one that the value takes the place of, if that was
/// given and has the layout.
void Plan::allocate(const Allocation& allocation, Library& library, Frame& frame) const {
  Slot made;
  if (allocation.replaced) {
    Slot& replaced = frame.slots[*allocation.replaced];
    if (replaced.is_tensor() && library.has_layout(replaced, allocation.layout))
      made = library.take_over(replaced);
  }
  if (made.is_empty()) made = library.allocate(allocation.layout);
  frame.slots[allocation.slot] = std::move(made);
}

bool Plan::run(const Step& step, Library& library, Frame& frame) {
  switch (step.kind) {
    case Step::Kind::operation_into:
    case Step::Kind::operation_fresh:
    case Step::Kind::operation_placed:
    case Step::Kind::beside:
    case Step::Kind::look:
      operation_may_fail(frame);
      if (!run_operation(step, library, frame)) return false;
      library.check_interrupt();
      return true;
    case Step::Kind::kernel:
      run_kernel(calls_[step.index], library, frame);
      return true;
    case Step::Kind::kernels:
      run_batch(batches_[step.index], library, frame);
      return true;
    case Step::Kind::number:
    case Step::Kind::size:
    case Step::Kind::item:
    case Step::Kind::identity:
    case Step::Kind::guard:
      return run_scalar(step.kind, planned_.instructions[step.index], library, frame);
    case Step::Kind::control:
      return OrdinaryRun(code_, library, frame, false)
          .run_control(planned_.instructions[step.index]);
    case Step::Kind::container:
      return run_container(planned_.instructions[step.index], library, frame);
    case Step::Kind::skip:
      TORCHJANUS_CHECK(false, "plan: a skip is no step to run");
    case Step::Kind::repoint:
    case Step::Kind::share:
    case Step::Kind::allocate:
    case Step::Kind::adopt:
    case Step::Kind::hand:
    case Step::Kind::copy:
    case Step::Kind::release:
      arrange(step, library, frame);
      return true;
  }
  TORCHJANUS_CHECK(false, "plan: no kind of step");
}

bool Plan::run_operation(const Step& step, Library& library, Frame& frame) {
  if (step.kind == Step::Kind::beside) {
    run_group(besides_[step.index], library, frame);
    return true;
  }
  if (step.kind == Step::Kind::operation_placed)
    return run_placed(placed_[step.index], library, frame);
  const Instruction& instruction = planned_.instructions[step.index];
  if (step.kind == Step::Kind::operation_fresh) return run_fresh(instruction, library, frame);
  frame.running = instruction.node;
  Operation& operation = *frame.operations[instruction.operation];
  const Operands operands{frame.slots.data(), instruction.inputs, instruction.outputs};
  if (step.kind == Step::Kind::look)
    operation.look(operands);
  else
    operation.run_into(operands);
  return true;
}

void Plan::run_kernel(Call& call, Library& library, Frame& frame) {
  for (const Patch& patch : call.patches)
    call.call.set_data(patch.operand, library.data(frame.slots[patch.slot]));
  frame.running = &call.call.node();
  call.call.run(frame.slots.data());
}

/// Of numbers, and what tests them.
bool Plan::run_scalar(Step::Kind kind, const Instruction& instruction, Library& library,
                      Frame& frame) {
  Slot* const slots = frame.slots.data();
  if (kind == Step::Kind::guard) {
    if (guard_holds(slots[instruction.inputs[0]], library) && !fault_due(Fault::guard)) return true;
    frame.failure = guard_failure(*instruction.node);
    return false;
  }
  Slot& output = slots[instruction.outputs[0]];
  if (kind == Step::Kind::number) {
    const Operands operands{slots, instruction.inputs, instruction.outputs};
    if (run_number(instruction.number, operands)) return true;
    frame.failure = failure_of_number(*instruction.node, operands);
    return false;
  }
  if (kind == Step::Kind::size) {
    if (evaluate_size(*instruction.node, frame.symbols, output)) return true;
    frame.failure = overflow(*instruction.node);
    return false;
  }
  const Slot& first = slots[instruction.inputs[0]];
  output = kind == Step::Kind::item
               ? read_item(*instruction.node, library.data(first))
               : Slot::of(first.object() == slots[instruction.inputs[1]].object());
  return true;
}

/// What tensors slots hold, and where these lie.
void Plan::arrange(const Step& step, Library& library, Frame& frame) {
  Slot* const slots = frame.slots.data();
  switch (step.kind) {
    case Step::Kind::repoint: {
      const View& view = views_[step.index];
      char* data = static_cast<char*>(library.data(slots[view.root]));
      library.repoint(slots[view.slot], data + view.offset_in(frame));
      break;
    }
    case Step::Kind::share: {
      const View& view = views_[step.index];
      slots[view.slot] =
          library.share(slots[view.root], view.offset_in(frame), frame.learned[view.slot].layout);
      break;
    }
    case Step::Kind::allocate:
      allocate(allocations_[step.index], library, frame);
      break;
    case Step::Kind::adopt:
      slots[adoptions_[step.index].to] = slots[adoptions_[step.index].from].alias();
      break;
    case Step::Kind::hand:
      slots[hands_[step.index].to] = slots[hands_[step.index].from];
      break;
    case Step::Kind::copy:
      if (slots[copies_[step.index].from].is_empty()) break;  // undefined, and nobody reads it
      library.copy(slots[copies_[step.index].to], slots[copies_[step.index].from]);
      break;
    case Step::Kind::release:
      slots[step.index].clear();
      break;
    default:
      TORCHJANUS_CHECK(false, "plan: no step that arranges tensors");
  }
}

void Plan::give(Frame& frame, std::span<Slot> results, std::span<Slot> rebound) {
  for (size_t i = 0; i < result_slots_.size(); ++i) results[i] = frame.slots[result_slots_[i]];
  for (size_t i = 0; i < rebound_slots_.size(); ++i)
    rebound[i] =
        is_rebound(code_.rebinds[i], frame) ? frame.slots[rebound_slots_[i]] : Slot::none();
}

void Plan::clear(Frame& frame) const {
  for (uint32_t slot : transient_) frame.slots[slot].clear();
}

}  // namespace janus::execute
