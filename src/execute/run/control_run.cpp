// Blocks within blocks and calls within calls, without the machine's stack (activation.h).
#include "base/fault.h"
#include "execute/library/failure.h"
#include "execute/run/ordinary_run.h"
#include "execute/run/scalar_call.h"
#include "graph/op.h"

namespace janus::execute {

namespace {

/// Moves or copies what a sequence gives to the end of `values`.
void take_results(const Sequence& sequence, Slot* slots, std::vector<Slot>& values) {
  for (size_t i = 0; i < sequence.results.size(); ++i) {
    Slot& result = slots[sequence.results[i]];
    if (sequence.own_results[i]) {
      values.push_back(std::move(result));
    } else {
      values.push_back(result);
    }
  }
}

}  // namespace

bool OrdinaryRun::run_blocks(const Instruction& instruction) {
  Activations& activations = frame_.activations;
  activations.clear();
  if (!enter(instruction)) return false;
  while (!activations.stack.empty()) {
    Activation& top = activations.stack.back();
    if (top.next == top.sequence->instructions.size()) {
      if (top.kind == Activation::Kind::test &&
          !materialise(frame_.slots[top.sequence->results[0]]))
        return false;
      leave();
      continue;
    }
    const Instruction& next = top.sequence->instructions[top.next++];
    if (next.is_control()) {
      if (!enter(next)) return false;
      continue;
    }
    if (!run(next)) return false;
    for (uint32_t slot : next.dead) frame_.slots[slot].clear();
  }
  return true;
}

bool OrdinaryRun::enter(const Instruction& instruction) {
  if (instruction.action == Action::call) return enter_call(instruction);
  if (instruction.action == Action::choose && !materialise(frame_.slots[instruction.inputs[0]]))
    return false;
  if (instruction.action == Action::choose) {
    enter_choice(instruction);
  } else {
    enter_loop(instruction);
  }
  return true;
}

void OrdinaryRun::start(const Sequence& sequence, const Instruction& instruction,
                        Activation::Kind kind) {
  frame_.activations.stack.push_back(
      {.sequence = &sequence, .instruction = &instruction, .kind = kind});
}

void OrdinaryRun::leave() {
  const Activation activation = frame_.activations.stack.back();
  frame_.activations.stack.pop_back();
  switch (activation.kind) {
    case Activation::Kind::side:
      return leave_choice(activation);
    case Activation::Kind::test:
      return leave_test(*activation.instruction);
    case Activation::Kind::iteration:
      return leave_iteration(*activation.instruction);
    case Activation::Kind::function:
      return leave_call(*activation.instruction);
  }
}

/// The instruction is done. Of the body's own instructions the caller frees the slots.
void OrdinaryRun::finish(const Instruction& instruction) {
  if (frame_.activations.stack.empty()) return;
  for (uint32_t slot : instruction.dead) frame_.slots[slot].clear();
}

// ---- if ---------------------------------------------------------------------------------------

void OrdinaryRun::enter_choice(const Instruction& instruction) {
  const bool taken = guard_holds(frame_.slots[instruction.inputs[0]], library_);
  start(instruction.blocks[taken ? 0 : 1], instruction, Activation::Kind::side);
}

void OrdinaryRun::leave_choice(const Activation& activation) {
  const Sequence& side = *activation.sequence;
  for (size_t i = 0; i < side.results.size(); ++i) {
    Slot& output = frame_.slots[activation.instruction->outputs[i]];
    Slot& result = frame_.slots[side.results[i]];
    if (side.own_results[i]) {
      output = std::move(result);
    } else {
      output = result;
    }
  }
  finish(*activation.instruction);
}

// ---- while: the first block gives the test, the second the next values ------------------------

void OrdinaryRun::enter_loop(const Instruction& instruction) {
  for (uint32_t slot : instruction.inputs) frame_.activations.values.push_back(frame_.slots[slot]);
  ++frame_.activations.repeating;
  start_test(instruction);
}

void OrdinaryRun::start_test(const Instruction& instruction) {
  const Sequence& test = instruction.blocks[0];
  const std::vector<Slot>& values = frame_.activations.values;
  const size_t first = values.size() - test.parameters.size();
  for (size_t i = 0; i < test.parameters.size(); ++i)
    if (test.used_parameters[i]) frame_.slots[test.parameters[i]] = values[first + i];
  start(test, instruction, Activation::Kind::test);
}

void OrdinaryRun::leave_test(const Instruction& instruction) {
  const Sequence &test = instruction.blocks[0], &next = instruction.blocks[1];
  Slot* const slots = frame_.slots.data();
  std::vector<Slot>& values = frame_.activations.values;
  const size_t count = test.parameters.size(), first = values.size() - count;
  const bool go_on = guard_holds(slots[test.results[0]], library_);
  for (size_t i = 0; i < count; ++i) {
    slots[test.parameters[i]].clear();
    if (!go_on) {
      slots[instruction.outputs[i]] = std::move(values[first + i]);
    } else if (next.used_parameters[i]) {
      slots[next.parameters[i]] = std::move(values[first + i]);
    }
  }
  values.resize(first);
  if (go_on) return start(next, instruction, Activation::Kind::iteration);
  --frame_.activations.repeating;
  finish(instruction);
}

void OrdinaryRun::leave_iteration(const Instruction& instruction) {
  const Sequence& body = instruction.blocks[1];
  take_results(body, frame_.slots.data(), frame_.activations.values);
  for (uint32_t slot : body.parameters) frame_.slots[slot].clear();
  library_.check_interrupt();
  start_test(instruction);
}

// ---- calls ------------------------------------------------------------------------------------

bool OrdinaryRun::enter_call(const Instruction& instruction) {
  const Sequence& function = *instruction.function;
  Activations& activations = frame_.activations;
  Slot* const slots = frame_.slots.data();
  if (activations.depth == frame_.deepest_call) {
    frame_.failure = too_deep(*instruction.node);
    return false;
  }
  library_.check_interrupt();
  std::vector<Slot>& arguments = activations.scratch;
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    Slot& input = slots[instruction.inputs[i]];
    if (instruction.moved_inputs[i] && activations.depth > 0) {
      arguments.push_back(std::move(input));
    } else {
      arguments.push_back(input);
    }
  }
  for (uint32_t slot : instruction.saved) activations.values.push_back(std::move(slots[slot]));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (function.used_parameters[i]) slots[function.parameters[i]] = std::move(arguments[i]);
  arguments.clear();
  ++activations.depth;
  ++activations.repeating;
  start(function, instruction, Activation::Kind::function);
  return true;
}

void OrdinaryRun::leave_call(const Instruction& instruction) {
  Activations& activations = frame_.activations;
  Slot* const slots = frame_.slots.data();
  std::vector<Slot>& results = activations.scratch;
  take_results(*instruction.function, slots, results);
  const size_t first = activations.values.size() - instruction.saved.size();
  for (size_t i = 0; i < instruction.saved.size(); ++i)
    slots[instruction.saved[i]] = std::move(activations.values[first + i]);
  activations.values.resize(first);
  for (size_t i = 0; i < results.size(); ++i) slots[instruction.outputs[i]] = std::move(results[i]);
  results.clear();
  --activations.depth;
  --activations.repeating;
  finish(instruction);
}

}  // namespace janus::execute
