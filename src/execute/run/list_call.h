// Executes operators that look into lists (ops/list_access.cpp).
#pragma once

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"

namespace janus::execute {

/// Computes one such operator. False: there is no such element, or the list has another length
/// than it must have; the run is given up.
bool run_list_access(const Instruction& instruction, Library& library, Frame& frame);

/// What a container may hold: not the memory of a plan, which is used for other things later.
Slot kept(const Slot& value, Library& library, const Frame& frame);
/// The gradient of a value of this type where nothing depends on it.
Slot zero(const graph::Type& type, Library& library, const SymbolValues& symbols);

}  // namespace janus::execute
