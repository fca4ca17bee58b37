// The instructions of a plan: those of the code's body, as the passes over them that know sizes
// have left them (relayout.h, certainty.h, sides.h, beside.h).
#pragma once

#include <cstddef>
#include <vector>

#include "execute/code/instruction.h"

namespace janus::execute {

/// The instructions of a plan, and how many of them come before the first that may write to cells.
struct PlannedCode {
  std::vector<Instruction> instructions;
  size_t tail = 0;
};

}  // namespace janus::execute
