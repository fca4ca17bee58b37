// Flattens an `if` into the plan: its sides become straight-line instructions with conditional
// skips.
//
// A plan knows where each of its values lies. So do those of an `if` whose sides it holds: what a
// side computes has its place in the plan's memory, and what it gives is computed where the result
// lies, in a parameter's own memory too; a side that gives what lies there already does nothing.
#pragma once

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"
#include "execute/plan/planned_code.h"

namespace janus::execute {

/// Puts in place of each `if` of whose sides all layouts can be learned (rehearsal.h): for either
/// side an instruction that skips the side unless it is taken, its instructions, and what it gives.
void open_branches(const Code& code, PlannedCode& planned, Frame& frame, Library& library);

/// Where an instruction stands: which `if` it is of, counted from 1 (0: none), and on which side.
struct Standing {
  size_t branch = 0;
  bool side = false;
};

/// By instruction. Of an `if` within an `if` only the outer one counts.
std::vector<Standing> find_sides(const PlannedCode& code);

}  // namespace janus::execute
