// Instructions on Python numbers, sizes and truth values, and those that read or test one: they
// need no memory of tensors, so that ordinary and planned runs execute them in the same way.
#pragma once

#include "execute/code/instruction.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"

namespace janus::execute {

/// Executes one such instruction. False: frame.failure says why the run is given up.
bool run_scalar(const Instruction& instruction, const Library& library, Frame& frame);

/// Whether a `guard`'s operand holds.
bool guard_holds(const Slot& slot, const Library& library);

}  // namespace janus::execute
