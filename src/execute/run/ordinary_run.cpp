// See ordinary_run.h; control flow is in control_run.cpp.
#include "execute/run/ordinary_run.h"

#include <algorithm>
#include <utility>

#include "base/fault.h"
#include "execute/code/container_operators.h"
#include "execute/code/fused_layouts.h"
#include "execute/frame/kernel_call.h"
#include "execute/library/copies.h"
#include "execute/library/failure.h"
#include "execute/run/communication.h"
#include "execute/run/container_call.h"
#include "execute/run/learning.h"
#include "execute/run/scalar_call.h"
#include "execute/values/container.h"
#include "graph/op.h"

namespace janus::execute {

using graph::Node;

bool OrdinaryRun::run() { return run(code_.body); }

// ---- rows -------------------------------------------------------------------------------------

namespace {

/// Whether it needs more of a tensor than to hand it on.
bool looks_into_tensors(const Instruction& instruction) {
  switch (instruction.action) {
    case Action::kernel:
    case Action::operation:
    case Action::item:
    case Action::guard:
      return true;
    case Action::container:
      return is_list_access(*instruction.node->op);
    default:
      return false;
  }
}

}  // namespace

bool OrdinaryRun::put_off(const Instruction& instruction) {
  Slot* const slots = frame_.slots.data();
  if (frame_.rows.put_off(instruction, slots)) return true;
  if (!compute_rows()) return false;
  TORCHJANUS_CHECK(frame_.rows.put_off(instruction, slots), "rows: an operand is not computed");
  return true;
}

bool OrdinaryRun::compute_rows() {
  if (!frame_.rows.is_waiting()) return true;
  ++frame_.activations.repeating;
  const bool done = frame_.rows.compute(
      library_, frame_.slots.data(),
      {frame_.slots, frame_.activations.values, frame_.activations.scratch}, frame_.symbols,
      [&](const Sequence& inner, RowsOfNumber* known) { return run_rows(inner, known); });
  --frame_.activations.repeating;
  return done;
}

/// What instructions of the block know of the last time, they know for this number of rows.
bool OrdinaryRun::run_rows(const Sequence& inner, RowsOfNumber* known) {
  rows_ = known;
  const bool done = run(inner);
  rows_ = nullptr;
  return done;
}

/// What an instruction in a block knows of the last time; null: nothing is kept.
Repeated* OrdinaryRun::repeated(const Instruction& instruction) {
  if (instruction.repeated >= frame_.repeated.size()) return nullptr;
  return rows_ != nullptr ? &rows_->repeated[instruction.repeated_in_block]
                          : &frame_.repeated[instruction.repeated];
}

/// Puts the tensor in the place of a row, or those of the rows that a container holds.
bool OrdinaryRun::materialise(Slot& slot) {
  if (!is_row(slot) && slot.kind() != Slot::Kind::container) return true;
  if (!compute_rows()) return false;
  if (is_row(slot)) {
    slot = frame_.rows.tensor(slot, library_);
    return true;
  }
  replace_items(slot, [&](Slot& item) {
    if (is_row(item)) item = frame_.rows.own_tensor(item, library_);
  });
  return true;
}

bool OrdinaryRun::materialise(std::span<const uint32_t> slots) {
  return std::all_of(slots.begin(), slots.end(),
                     [&](uint32_t slot) { return materialise(frame_.slots[slot]); });
}

bool OrdinaryRun::materialise_results() {
  if (!puts_off_) return true;
  if (!compute_rows()) return false;
  return materialise(code_.body.results);
}

bool OrdinaryRun::run(const Sequence& sequence) {
  for (const Instruction& instruction : sequence.instructions) {
    if (!run(instruction)) return false;
    for (uint32_t slot : instruction.dead) frame_.slots[slot].clear();
  }
  return true;
}

bool OrdinaryRun::run(const Instruction& instruction) {
  if (puts_off_ && rows_ == nullptr && looks_into_tensors(instruction) &&
      !materialise(instruction.inputs))
    return false;
  switch (instruction.action) {
    case Action::rows:
      return put_off(instruction);
    case Action::kernel:
      run_kernel(instruction);
      break;
    case Action::operation:
      run_operation(instruction);
      break;
    case Action::number:
    case Action::size:
    case Action::item:
    case Action::guard:
    case Action::identity:
      return run_scalar(instruction, library_, frame_);
    case Action::dimension:
      return run_dimension(instruction);
    case Action::container:
      if (run_container(instruction, library_, frame_)) return true;
      frame_.failure =
          failure_of(Failure::Kind::operation, *instruction.node, "the list has no such element");
      return false;
    case Action::relayout:
    case Action::skip:
    case Action::give:
      TORCHJANUS_CHECK(false, "ordinary run: an instruction of a plan");
    case Action::heap:
      if (in_block_) return run_heap(instruction);
      if (!run_control(instruction)) return false;
      break;
    case Action::choose:
    case Action::loop:
    case Action::call:
      if (!run_control(instruction)) return false;
      break;
  }
  learn_ ? learn(instruction, frame_, library_)
         : check_opaque_results(instruction, frame_, library_);
  return true;
}

bool OrdinaryRun::run_heap(const Instruction& instruction) {
  const Operands operands{frame_.slots.data(), instruction.inputs, instruction.outputs};
  const uint32_t kind = code_.read_kinds[instruction.operation];
  Findings* const findings = frame_.findings;
  if (findings != nullptr && findings->is_closed() && findings->find(kind, operands)) return true;
  if (frame_.heap_reads[instruction.operation]->run(operands) && !fault_due(Fault::guard) &&
      !is_written(operands.out(0))) {
    if (findings != nullptr && !findings->is_closed()) findings->note(kind, operands);
    return true;
  }
  frame_.failure = guard_failure(*instruction.node);
  return false;
}

/// Whether it is a tensor in the memory of a cell that the run writes. That no two of the caller's
/// tensors are one where it matters, the caller knows only of those that it gives.
bool OrdinaryRun::is_written(const Slot& value) {
  if (!value.is_tensor() || code_.commits.empty()) return false;
  if (frame_.written.empty())
    for (const Write& write : code_.commits)
      frame_.written.insert(library_.storage(frame_.slots[cell_slot(code_, write.cell)]));
  return frame_.written.contains(library_.storage(value));
}

bool OrdinaryRun::run_control(const Instruction& instruction) {
  const bool learns = std::exchange(learn_, false);  // what blocks make has no layout for good
  in_block_ = true;
  const bool done =
      instruction.action == Action::heap ? run_heap(instruction) : run_blocks(instruction);
  const bool computed = done && compute_last_rows(instruction) && materialise_outputs(instruction);
  in_block_ = false;
  for (Repeated& repeated : frame_.repeated) repeated.forget_large_tensors();
  learn_ = learns;
  return computed && give_memory(instruction);
}

/// The containers that the instruction was the last to use are not needed meanwhile: neither they
/// nor what they hold. That there are any, give_memory() sees by what stands in their place.
bool OrdinaryRun::compute_last_rows(const Instruction& instruction) {
  for (const uint32_t slot : instruction.dead) {
    Slot& value = frame_.slots[slot];
    if (value.kind() == Slot::Kind::container && !is_row(value)) value = empty_list();
  }
  return compute_rows();
}

/// What comes out of blocks are tensors, containers as they are: what is in them is looked at in
/// blocks again.
bool OrdinaryRun::materialise_outputs(const Instruction& instruction) {
  for (const uint32_t slot : instruction.outputs) {
    Slot& value = frame_.slots[slot];
    if (!is_row(value)) continue;
    value = frame_.rows.take_tensor(value, library_);
    if (!library_.has_no_other_owner(value)) value = cloned(library_, value, true);
  }
  return true;
}

/// Copies those results that lie in memory of values from outside of the blocks, of each other, or
/// of what a frame keeps that outlives the run: the program may write to them; and, while layouts
/// are learned, those whose elements lie in one place. False: one lies otherwise than it is planned
/// to, and the program would see that.
bool OrdinaryRun::give_memory(const Instruction& instruction) {
  std::vector<const void*> taken;
  bool others = code_.hands_out_containers || code_.uses_objects;
  for (uint32_t slot : instruction.used) {
    const Slot& value = frame_.slots[slot];
    if (value.is_tensor()) taken.push_back(library_.storage(value));
    others |= value.kind() == Slot::Kind::container;
  }
  // Where a plan is to copy the results of other runs to, each element needs a place.
  const auto needs_room = [&](const Slot& value) {
    return learn_ && !instruction.shows_strides && !library_.layout(value).is_separate();
  };
  const auto is_shared = [&](const Slot& value) {
    const void* storage = library_.storage(value);
    return frame_.borrowed.contains(storage) ||
           std::find(taken.begin(), taken.end(), storage) != taken.end() ||
           (others && !library_.has_no_other_owner(value));
  };
  for (uint32_t slot : instruction.outputs) {
    Slot& value = frame_.slots[slot];
    if (!value.is_tensor()) continue;
    if (!library_.has_no_other_owner(value))
      for (Repeated& repeated : frame_.repeated) repeated.forget(value);
    const Learned& known = frame_.learned[slot];
    if (known.is_tensor() && !library_.has_layout(value, known.layout)) {
      const Layout layout = library_.layout(value);
      TORCHJANUS_CHECK(layout.sizes == known.layout.sizes && layout.dtype == known.layout.dtype,
                       instruction.node->op->name, ": gave ", layout, ", earlier ", known.layout);
      if (instruction.shows_strides) {
        frame_.give_up_as_lying_otherwise(*instruction.node);
        return false;
      }
      value = cloned(library_, value, known.layout);
    } else if (is_shared(value) || needs_room(value)) {
      const Layout layout = library_.layout(value);
      value = instruction.shows_strides && layout.is_separate() ? cloned(library_, value, layout)
                                                                : cloned(library_, value);
    }
    taken.push_back(library_.storage(value));
  }
  return true;
}

bool OrdinaryRun::run_dimension(const Instruction& instruction) {
  const Slot& size = frame_.slots[instruction.inputs[0]];
  if (size.i64() < 2) {
    frame_.failure = failure_of(
        Failure::Kind::operation, *instruction.node,
        cat("the data decide a size of ", size.i64(), ", and the graph is for sizes from 2 on"));
    return false;
  }
  frame_.symbols.set(instruction.node->attributes.get<std::string>("symbol"), size.i64());
  frame_.slots[instruction.outputs[0]] = Slot::of(size.i64());
  return true;
}

void OrdinaryRun::run_operation(const Instruction& instruction) {
  note_communication(*instruction.node, frame_, library_);
  if (!frame_.is_certain) fault_point(Fault::operation);
  frame_.running = instruction.node;
  call_operation(instruction);
  library_.check_interrupt();
}

void OrdinaryRun::call_operation(const Instruction& instruction) {
  if (frame_.operations[instruction.operation] == nullptr) {
    const Operands operands{frame_.slots.data(), instruction.inputs, instruction.outputs};
    return library_.bind(*instruction.node, frame_.symbols.lookup())->run(operands);
  }
  Operation& operation = *frame_.operations[instruction.operation];
  const Operands operands{frame_.slots.data(), instruction.inputs, instruction.outputs};
  Repeated* const known = frame_.activations.repeating > 0 ? repeated(instruction) : nullptr;
  const bool in_loop = known != nullptr;
  if (in_loop && instruction.is_view) return view_operand(instruction, operation, *known);
  if (in_loop && operation.can_run_in_place() && take_first_input(instruction))
    return operation.run_into(operands);
  if (!in_loop || !operation.can_run_into() || operation.can_run_in_place())
    return operation.run(operands);
  if (!known->fits(instruction, operands.slots, library_)) {
    operation.run(operands);
    return note_outputs(instruction, *known);
  }
  if (!known->knows_outputs()) return operation.run(operands);
  known->make_outputs(instruction, operands.slots, library_, true);
  operation.run_into(operands);
}

/// A view is made here once it is known where it lies.
void OrdinaryRun::view_operand(const Instruction& instruction, Operation& operation,
                               Repeated& repeated) {
  Slot* const slots = frame_.slots.data();
  const Slot& base = slots[instruction.inputs[0]];
  Slot& output = slots[instruction.outputs[0]];
  if (repeated.fits(instruction, slots, library_) && repeated.view()) {
    output = library_.share(base, repeated.view()->byte_offset, repeated.view()->layout);
    return;
  }
  operation.run({slots, instruction.inputs, instruction.outputs});
  repeated.note(instruction, slots, library_, {});
  if (library_.data(base) == nullptr || library_.storage(output) != library_.storage(base)) return;
  repeated.view() = {static_cast<const char*>(library_.data(output)) -
                         static_cast<const char*>(library_.data(base)),
                     library_.layout(output)};
}

/// Puts the first input's tensor into the output's slot as well, if nobody else has it and it is
/// not needed any more.
bool OrdinaryRun::take_first_input(const Instruction& instruction) {
  const Slot& input = frame_.slots[instruction.inputs[0]];
  if (!instruction.moved_inputs[0] || !input.is_tensor()) return false;
  if (!library_.has_no_other_owner(input) || !library_.layout(input).is_contiguous()) return false;
  frame_.slots[instruction.outputs[0]] = input;
  return true;
}

/// Results that are dense tensors with memory of their own can be made beforehand the next time.
void OrdinaryRun::note_outputs(const Instruction& instruction, Repeated& repeated) {
  std::vector<const void*> taken;
  for (uint32_t slot : instruction.inputs) {
    if (frame_.slots[slot].is_tensor()) taken.push_back(library_.storage(frame_.slots[slot]));
  }
  std::vector<Layout> outputs;
  for (uint32_t slot : instruction.outputs) {
    const Slot& value = frame_.slots[slot];
    const void* storage = value.is_tensor() ? library_.storage(value) : nullptr;
    if (storage == nullptr || std::find(taken.begin(), taken.end(), storage) != taken.end() ||
        !library_.layout(value).is_dense()) {
      outputs.clear();
      break;
    }
    taken.push_back(storage);
    outputs.push_back(library_.layout(value));
  }
  repeated.note(instruction, frame_.slots.data(), library_, std::move(outputs));
}

void OrdinaryRun::run_kernel(const Instruction& instruction) {
  if (Repeated* const known = repeated(instruction)) return run_kernel(instruction, *known);
  Repeated once;
  run_kernel(instruction, once);
}

void OrdinaryRun::run_kernel(const Instruction& instruction, Repeated& repeated) {
  Slot* const slots = frame_.slots.data();
  if (!repeated.fits(instruction, slots, library_))
    prepare_kernel(instruction, repeated);
  else
    repeated.kernel_call()->place();
  repeated.make_outputs(instruction, slots, library_, frame_.activations.repeating > 0);
  KernelCall& call = *repeated.kernel_call();
  for (size_t i = 0; i < call.tensor_count(); ++i) {
    call.set_data(i, library_.data(slots[call.slot(i)]));
  }
  frame_.running = &call.node();
  call.run(slots);
}

void OrdinaryRun::prepare_kernel(const Instruction& instruction, Repeated& repeated) {
  std::vector<Layout> layouts;
  layouts.reserve(instruction.inputs.size());
  std::vector<const Layout*> inputs;
  for (uint32_t slot : instruction.inputs) {
    const bool is_tensor = frame_.slots[slot].is_tensor();
    if (is_tensor) layouts.push_back(library_.layout(frame_.slots[slot]));
    inputs.push_back(is_tensor ? &layouts.back() : nullptr);
  }
  const std::vector<Layout> outputs = fused_layouts(*instruction.node, inputs);
  repeated.note(instruction, frame_.slots.data(), library_, outputs);
  repeated.kernel_call().emplace(instruction, inputs, outputs);
}

}  // namespace janus::execute
