// Operators on frames and lists, between slots.
#pragma once

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"

namespace janus::execute {

bool is_container_operator(const graph::OpDef& op);

/// Computes one such operator. False: a list is empty that must not be, and the run is given up.
bool run_container(const Instruction& instruction, Library& library, Frame& frame);

}  // namespace janus::execute
