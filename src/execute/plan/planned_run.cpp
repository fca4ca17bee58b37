// See planned_run.h.
#include "execute/plan/planned_run.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/fault.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/printable.h"
#include "base/steady_time.h"
#include "base/thread_pool.h"
#include "base/thread_time.h"
#include "base/timeline.h"
#include "execute/library/kernel_watcher.h"
#include "execute/plan/beside.h"
#include "execute/run/boundary.h"
#include "execute/run/communication.h"
#include "execute/run/container_call.h"
#include "execute/run/ordinary_run.h"
#include "execute/run/scalar_call.h"
#include "ops/list.h"

namespace janus::execute {

namespace {

/// Runs from one whose steps are timed to the next, and which is the first of these: the ones
/// before bring code and data into the caches. With 40 ns for the two looks at the clock, steps of
/// 1 µs take 0.06 % longer in the mean.
constexpr uint32_t kRunsOfSample = 64, kFirstSample = 2;

/// Steps that only arrange memory, or take no time, are none.
bool computes(Step::Kind kind) {
  using Kind = Step::Kind;
  return kind == Kind::operation_into || kind == Kind::operation_fresh ||
         kind == Kind::operation_placed || kind == Kind::beside || kind == Kind::kernel ||
         kind == Kind::kernels || kind == Kind::control;
}

/// Its operator; of a fused one those in it.
std::string operators_of(const graph::Node& node) {
  if (node.op != &op::fused) return std::string(node.op->name);
  std::string names;
  for (const graph::Node* within : node.blocks.front()->nodes)
    if (within->op->role != graph::Role::constant)
      names += cat(names.empty() ? "" : " ", within->op->name);
  return names;
}

std::string place_of(const graph::Node& node) {
  return node.span.known() ? cat(printable(*node.span.file), ':', node.span.line) : std::string();
}

/// Tells who watches kernels, if somebody does; a step that belongs to no node is none.
class WatchedKernel {
 public:
  explicit WatchedKernel(const graph::Node* node)
      : watcher_(node == nullptr ? nullptr : kernel_watcher) {
    if (watcher_ != nullptr) watcher_->begin(cat(operators_of(*node), " (", place_of(*node), ')'));
  }
  ~WatchedKernel() {
    if (watcher_ != nullptr) watcher_->end();
  }
  WatchedKernel(const WatchedKernel&) = delete;
  WatchedKernel& operator=(const WatchedKernel&) = delete;

 private:
  KernelWatcher* watcher_;
};

/// For tests: the place where an operator fails on demand.
void operation_may_fail(const Frame& frame) {
  if (!frame.is_certain) fault_point(Fault::operation);
}

}  // namespace

/// An operator may compute a result in several ways, which give dimensions of one element different
/// strides: the memory is the same. Where a run can't be given up any more, what really lies
/// otherwise is copied.
bool PlannedRun::ensure_layout(const Instruction& instruction, size_t output, Slot& made) {
  if (!made.is_tensor()) return true;
  const Layout& wanted = frame_.learned[instruction.outputs[output]].layout;
  if (library_.has_layout(made, wanted)) return true;
  const Layout layout = library_.layout(made);
  const bool has_same_elements = layout.sizes == wanted.sizes && layout.dtype == wanted.dtype;
  if (has_same_elements && layout.has_strides(wanted.strides)) {
    made = library_.share(made, 0, wanted);
    return true;
  }
  if (has_same_elements && (instruction.is_relaid || frame_.is_certain)) {
    Slot copy = library_.allocate(wanted);
    library_.copy(copy, made);
    made = std::move(copy);
    return true;
  }
  frame_.give_up_as_lying_otherwise(*instruction.node);
  return false;
}

bool PlannedRun::run_fresh(const Instruction& instruction) {
  frame_.running = instruction.node;
  frame_.operations[instruction.operation]->run(
      {frame_.slots.data(), instruction.inputs, instruction.outputs});
  for (size_t i = 0; i < instruction.outputs.size(); ++i) {
    Slot& made = frame_.slots[instruction.outputs[i]];
    if (!ensure_layout(instruction, i, made)) return false;
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
bool PlannedRun::put_into_place(const Plan::Placed& call) {
  const Instruction& instruction = plan_.code.instructions[call.instruction];
  std::vector<std::pair<uint32_t, Slot>> copies;
  for (const Placement& placement : call.placements) {
    const uint32_t slot = instruction.outputs[placement.output];
    Slot& made = frame_.slots[call.made[placement.output]];
    const Layout& wanted = frame_.learned[slot].layout;
    const void* data = library_.data(made);
    if (data == placement.memory && library_.has_layout(made, wanted)) continue;
    Layout layout = library_.layout(made);
    if (layout.sizes != wanted.sizes || layout.dtype != wanted.dtype) {
      return ensure_layout(instruction, placement.output, made);
    }
    if (data == placement.memory && layout.has_strides(wanted.strides)) continue;
    if (lies_in_a_place(call.placements, data)) move_away(made, std::move(layout), library_);
    copies.emplace_back(slot, made);
  }
  for (const auto& [slot, made] : copies) library_.copy(frame_.slots[slot], made);
  return true;
}

/// A result that has no place may have been made in that of another one of its size.
void PlannedRun::leave_places(const Plan::Placed& call) {
  for (size_t i = 0; i < call.made.size(); ++i) {
    Slot& made = frame_.slots[call.made[i]];
    const auto is_its_own = [&](const Placement& placement) { return placement.output == i; };
    if (!made.is_tensor() || std::ranges::any_of(call.placements, is_its_own)) continue;
    const void* data = library_.data(made);
    if (data != nullptr && lies_in_a_place(call.placements, data))
      move_away(made, library_.layout(made), library_);
  }
}

bool PlannedRun::run_placed(Plan::Placed& call) {
  const Instruction& instruction = plan_.code.instructions[call.instruction];
  Slot* const slots = frame_.slots.data();
  frame_.running = instruction.node;
  for (const size_t i : call.moving) {
    Placement& placement = call.placements[i];
    placement.memory = library_.data(slots[instruction.outputs[placement.output]]);
  }
  library_.run_placed(*frame_.operations[instruction.operation],
                      {slots, instruction.inputs, call.made}, call.placements);
  leave_places(call);
  if (!put_into_place(call)) return false;
  for (const Placement& placement : call.placements) slots[call.made[placement.output]].clear();
  for (size_t i = 0; i < call.made.size(); ++i) {
    Slot& made = slots[call.made[i]];
    if (made.is_empty()) continue;
    if (!ensure_layout(instruction, i, made)) return false;
    slots[instruction.outputs[i]] = std::move(made);
  }
  return true;
}

void PlannedRun::run_batch(Plan::Batch& batch) {
  std::vector<KernelCall>& calls = batch.kernels.calls();
  for (const Plan::Patch& patch : batch.patches)
    calls[patch.call].set_data(patch.operand, library_.data(frame_.slots[patch.slot]));
  frame_.running = &calls.back().node();
  batch.kernels.run(frame_.slots.data());
}

void PlannedRun::run_group(Plan::Beside& group) {
  std::array<OperationCall, policy::kMostBeside> calls;
  for (uint32_t i = 0; i < group.count; ++i) {
    const Instruction& instruction = plan_.code.instructions[group.first + i];
    calls[i] = {frame_.operations[instruction.operation].get(),
                {frame_.slots.data(), instruction.inputs, instruction.outputs}};
    frame_.running = instruction.node;
  }
  const std::span<const OperationCall> all(calls.data(), group.count);
  const auto run = [&](bool beside) {
    if (beside) return library_.run_beside(all);
    for (const OperationCall& call : all) call.operation->run_into(call.operands);
  };
  const int threads = thread_count();
  if (std::exchange(group.threads, threads) != threads) group.runs = 0;
  if (threads == 1) return run(false);
  if (group.runs == policy::kTimedGroupRuns) return run(group.seconds[1] < group.seconds[0]);
  const bool beside = group.runs % 2 == 1;
  const double start = steady_seconds();
  run(beside);
  const double taken = steady_seconds() - start;
  double& least = group.seconds[beside ? 1 : 0];
  least = group.runs < 2 ? taken : std::min(least, taken);
  ++group.runs;
}

bool PlannedRun::run(std::span<Slot> replaceable) {
  for (size_t i = 0; i < replaceable.size(); ++i)
    frame_.slots[plan_.replaced_slots[i]] = std::move(replaceable[i]);
  is_sampled_ = begin_sample();
  if (!run_steps(0, plan_.first_write)) return false;
  frame_.is_certain = true;
  library_.enter_certain_part();
  const bool done = run_steps(plan_.first_write, plan_.steps.size());
  TORCHJANUS_CHECK(done, "plan: a step has failed that can't fail");
  for (const Write& write : code_.commits)
    library_.bump_version(frame_.slots[cell_slot(code_, write.cell)], writes_of(write, frame_));
  return true;
}

bool PlannedRun::run_steps(size_t begin, size_t end) {
  const bool timed = log_enabled("time");
  const bool watched = is_sampled_ || Timeline::is_kept() || kernel_watcher != nullptr;
  if (timed) plan_.times.resize(plan_.steps.size());
  for (size_t i = begin; i < end; ++i) {
    if (plan_.steps[i].kind == Step::Kind::skip) {
      const Plan::Skip& skip = plan_.skips[plan_.steps[i].index];
      if (guard_holds(frame_.slots[skip.condition], library_) != skip.wanted) i += skip.steps;
      continue;
    }
    const double start = timed ? thread_seconds() : 0;
    const bool ran = watched ? run_watched(i) : run(plan_.steps[i]);
    if (!ran) return false;
    if (!timed) continue;
    const double taken = thread_seconds() - start;
    plan_.times[i] = plan_.times[i] == 0 ? taken : std::min(plan_.times[i], taken);
  }
  return true;
}

/// Whether the steps of this run are timed.
bool PlannedRun::begin_sample() {
  Plan::Samples& samples = plan_.samples;
  if (samples.runs++ % kRunsOfSample != kFirstSample) return false;
  samples.seconds.resize(plan_.steps.size());
  ++samples.timed;
  return true;
}

/// For reports, the timeline and torch's profiler: what computes, by operators and place in the
/// program.
bool PlannedRun::run_watched(size_t i) {
  const Step& step = plan_.steps[i];
  const graph::Node* const node = computes(step.kind) ? plan_.picture.steps[i] : nullptr;
  const bool is_kernel = step.kind == Step::Kind::kernel || step.kind == Step::Kind::kernels;
  const WatchedKernel watched(is_kernel ? node : nullptr);
  const double start = steady_seconds();
  const bool ran = run(step);
  const double end = steady_seconds();
  if (is_sampled_) plan_.samples.seconds[i] += end - start;
  if (node != nullptr && Timeline::is_kept())
    Timeline::add(node->op == &op::fused ? "kernel" : "operator", operators_of(*node), start, end,
                  place_of(*node));
  return ran;
}

/// A new tensor, or what can be made of the one that the value takes the place of, if that was
/// given and has the layout.
void PlannedRun::allocate(const Plan::Allocation& allocation) {
  Slot made;
  if (allocation.replaced) {
    Slot& replaced = frame_.slots[*allocation.replaced];
    if (replaced.is_tensor() && library_.has_layout(replaced, allocation.layout))
      made = library_.take_over(replaced);
  }
  if (made.is_empty()) made = library_.allocate(allocation.layout);
  frame_.slots[allocation.slot] = std::move(made);
}

bool PlannedRun::run(const Step& step) {
  switch (step.kind) {
    case Step::Kind::operation_into:
    case Step::Kind::operation_fresh:
    case Step::Kind::operation_placed:
    case Step::Kind::beside:
    case Step::Kind::look:
      operation_may_fail(frame_);
      if (!run_operation(step)) return false;
      library_.check_interrupt();
      return true;
    case Step::Kind::kernel:
      run_kernel(plan_.calls[step.index]);
      return true;
    case Step::Kind::kernels:
      run_batch(plan_.batches[step.index]);
      return true;
    case Step::Kind::number:
    case Step::Kind::size:
    case Step::Kind::item:
    case Step::Kind::identity:
    case Step::Kind::guard:
      return run_scalar(plan_.code.instructions[step.index], library_, frame_);
    case Step::Kind::control:
      return OrdinaryRun(code_, library_, frame_, false)
          .run_control(plan_.code.instructions[step.index]);
    case Step::Kind::container:
      return run_container(plan_.code.instructions[step.index], library_, frame_);
    case Step::Kind::skip:
      TORCHJANUS_CHECK(false, "plan: a skip is no step to run");
    case Step::Kind::repoint:
    case Step::Kind::share:
    case Step::Kind::allocate:
    case Step::Kind::adopt:
    case Step::Kind::hand:
    case Step::Kind::copy:
    case Step::Kind::release:
      arrange(step);
      return true;
  }
  TORCHJANUS_CHECK(false, "plan: no kind of step");
}

bool PlannedRun::run_operation(const Step& step) {
  if (step.kind == Step::Kind::beside) {
    run_group(plan_.besides[step.index]);
    return true;
  }
  if (step.kind == Step::Kind::operation_placed) return run_placed(plan_.placed[step.index]);
  const Instruction& instruction = plan_.code.instructions[step.index];
  if (step.kind == Step::Kind::operation_fresh) return run_fresh(instruction);
  note_communication(*instruction.node, frame_, library_);
  frame_.running = instruction.node;
  Operation& operation = *frame_.operations[instruction.operation];
  const Operands operands{frame_.slots.data(), instruction.inputs, instruction.outputs};
  if (step.kind == Step::Kind::look)
    operation.look(operands);
  else
    operation.run_into(operands);
  return true;
}

void PlannedRun::run_kernel(Plan::Call& call) {
  for (const Plan::Patch& patch : call.patches)
    call.call.set_data(patch.operand, library_.data(frame_.slots[patch.slot]));
  frame_.running = &call.call.node();
  call.call.run(frame_.slots.data());
}

/// What tensors slots hold, and where these lie.
void PlannedRun::arrange(const Step& step) {
  Slot* const slots = frame_.slots.data();
  switch (step.kind) {
    case Step::Kind::repoint: {
      const Plan::View& view = plan_.views[step.index];
      char* data = static_cast<char*>(library_.data(slots[view.root]));
      library_.repoint(slots[view.slot], data + view.offset(frame_.first_elements));
      break;
    }
    case Step::Kind::share: {
      const Plan::View& view = plan_.views[step.index];
      slots[view.slot] = library_.share(slots[view.root], view.offset(frame_.first_elements),
                                        frame_.learned[view.slot].layout);
      break;
    }
    case Step::Kind::allocate:
      allocate(plan_.allocations[step.index]);
      break;
    case Step::Kind::adopt:
      slots[plan_.adoptions[step.index].to] = slots[plan_.adoptions[step.index].from].alias();
      break;
    case Step::Kind::hand:
      slots[plan_.hands[step.index].to] = slots[plan_.hands[step.index].from];
      break;
    case Step::Kind::copy:
      if (slots[plan_.copies[step.index].from].is_empty()) break;  // undefined, and nobody reads it
      library_.copy(slots[plan_.copies[step.index].to], slots[plan_.copies[step.index].from]);
      break;
    case Step::Kind::release:
      slots[step.index].clear();
      break;
    default:
      TORCHJANUS_CHECK(false, "plan: no step that arranges tensors");
  }
}

void PlannedRun::give(std::span<Slot> results, std::span<Slot> rebound) const {
  for (size_t i = 0; i < plan_.result_slots.size(); ++i)
    results[i] = frame_.slots[plan_.result_slots[i]];
  for (size_t i = 0; i < plan_.rebound_slots.size(); ++i)
    rebound[i] = bound_to(code_.rebinds[i], frame_, frame_.slots[plan_.rebound_slots[i]]);
}

void clear_transient(const Plan& plan, Frame& frame) {
  for (const uint32_t slot : plan.transient) frame.slots[slot].clear();
}

std::vector<TimedNode> timed_nodes(const Plan& plan) {
  std::vector<TimedNode> found;
  const Plan::Samples& samples = plan.samples;
  for (size_t i = 0; i < samples.seconds.size(); ++i) {
    const double seconds = samples.seconds[i] / samples.timed;
    if (plan.steps[i].kind == Step::Kind::kernels) {
      const std::vector<KernelCall>& calls = plan.batches[plan.steps[i].index].kernels.calls();
      for (const KernelCall& call : calls)
        found.push_back({&call.node(), seconds / static_cast<double>(calls.size())});
    } else if (plan.picture.steps[i] != nullptr) {
      found.push_back({plan.picture.steps[i], seconds});
    }
  }
  return found;
}

}  // namespace janus::execute
