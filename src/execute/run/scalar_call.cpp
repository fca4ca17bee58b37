// See scalar_call.h.
#include "execute/run/scalar_call.h"

#include <optional>
#include <variant>

#include "base/check.h"
#include "base/fault.h"
#include "execute/library/failure.h"
#include "execute/values/numbers.h"

namespace janus::execute {

namespace {

/// Evaluates a `size` node; false on overflow.
bool evaluate_size(const graph::Node& node, const SymbolValues& symbols, Slot& result) {
  const graph::AttributeValue& of = *node.attributes.find("of");
  const auto* number = std::get_if<int64_t>(&of);
  const auto value = number != nullptr ? std::optional<int64_t>(*number)
                                       : std::get<graph::Dim>(of).evaluate(symbols.lookup());
  if (!value) return false;
  result = Slot::of(*value);
  return true;
}

bool run_number(const Instruction& instruction, Frame& frame) {
  const Operands operands{frame.slots.data(), instruction.inputs, instruction.outputs};
  if (run_number(instruction.number, operands)) return true;
  frame.failure = failure_of_number(*instruction.node, operands);
  return false;
}

bool run_size(const Instruction& instruction, Frame& frame) {
  if (evaluate_size(*instruction.node, frame.symbols, frame.slots[instruction.outputs[0]]))
    return true;
  frame.failure = overflow(*instruction.node);
  return false;
}

bool run_guard(const Instruction& instruction, const Library& library, Frame& frame) {
  const bool holds = guard_holds(frame.slots[instruction.inputs[0]], library);
  if (holds && !fault_due(Fault::guard)) return true;
  frame.failure = guard_failure(*instruction.node);
  return false;
}

}  // namespace

bool run_scalar(const Instruction& instruction, const Library& library, Frame& frame) {
  Slot* const slots = frame.slots.data();
  switch (instruction.action) {
    case Action::number:
      return run_number(instruction, frame);
    case Action::size:
      return run_size(instruction, frame);
    case Action::guard:
      return run_guard(instruction, library, frame);
    case Action::item:
      slots[instruction.outputs[0]] =
          read_item(*instruction.node, library.data(slots[instruction.inputs[0]]));
      return true;
    case Action::identity:
      slots[instruction.outputs[0]] =
          Slot::of(slots[instruction.inputs[0]].object() == slots[instruction.inputs[1]].object());
      return true;
    default:
      TORCHJANUS_CHECK(false, "run_scalar: an instruction on more than numbers");
  }
}

bool guard_holds(const Slot& slot, const Library& library) {
  switch (slot.kind()) {
    case Slot::Kind::boolean:
      return slot.boolean();
    case Slot::Kind::i64:
      return slot.i64() != 0;
    case Slot::Kind::f64:
      return slot.f64() != 0;
    case Slot::Kind::tensor:
      TORCHJANUS_CHECK(library.layout(slot).dtype == graph::DType::b1,
                       "guard: a tensor that is not boolean");
      return *static_cast<const bool*>(library.data(slot));
    default:
      TORCHJANUS_CHECK(false, "guard: the operand is no truth value");
  }
}

}  // namespace janus::execute
