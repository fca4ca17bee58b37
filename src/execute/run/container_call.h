// Executes operators on frames and lists.
#pragma once

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"

namespace janus::execute {

/// Computes one such operator. False: a list is empty that must not be, and the run is given up.
bool run_container(const Instruction& instruction, Library& library, Frame& frame);

}  // namespace janus::execute
