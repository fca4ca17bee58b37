// The control stack of a run: blocks and calls that were entered and not yet left.
//
// It is kept here and not on the machine's stack, so calls may nest as deeply as there is memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "execute/code/instruction.h"
#include "execute/values/slot.h"

namespace janus::execute {

/// A sequence that has been entered and not been left.
struct Activation {
  enum class Kind : uint8_t {
    side,       ///< of an `if`
    test,       ///< of a `while`: its carried values are on the stack of values
    iteration,  ///< of a `while`
    function    ///< of a call: what it has put aside is on the stack of values
  };
  const Sequence* sequence = nullptr;
  const Instruction* instruction = nullptr;  ///< whose block or function it is
  size_t next = 0;                           ///< index of the instruction to be executed
  Kind kind = Kind::side;
};

struct Activations {
  std::vector<Activation> stack;
  std::vector<Slot> values;   ///< of loops and calls that go on, the innermost at the end
  std::vector<Slot> scratch;  ///< arguments and results on their way
  int64_t depth = 0;          ///< how many calls go on
  int64_t repeating = 0;      ///< how many loops and calls go on

  void clear() {
    stack.clear();
    values.clear();
    scratch.clear();
    depth = repeating = 0;
  }
};

}  // namespace janus::execute
