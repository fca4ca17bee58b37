// The no-fail point of a plan: from there on a run can't bail out.
//
// Before that point nothing outside may change. After it, gradients are written into the tensors
// that hold the old ones, and cells as soon as their new contents are computed, so the earlier it
// comes, the less is held twice or copied at the end. Only instructions that can't fail may follow
// it: kernels, copies, views, and those operators of which the library says so. What communicates
// with other processes may raise their errors, so nothing that is computed comes between it and the
// end of that.
#pragma once

#include <vector>

#include "execute/frame/frame.h"
#include "execute/library/library.h"
#include "execute/plan/lifetimes.h"
#include "execute/plan/planned_code.h"

namespace janus::execute {

/// Puts numbers that may not fit, and depend on nothing large, first: whether the power of an
/// optimizer's step count overflows is known before anything large is computed.
void compute_numbers_first(PlannedCode& code, const Library& library, const Frame& frame);

/// Whether the instruction can't fail, on operands of the sizes on which it ran before, unless
/// memory runs out.
bool is_certain(const Instruction& instruction, const Library& library, const Frame& frame);

/// The part of a plan in which nothing can fail: the instructions from `begin` on.
struct CertainPart {
  size_t begin = 0;
  /// Operators in it that may fail, but tell so by what is there before it begins
  /// (Operation::look).
  std::vector<size_t> looked_at;
};

/// `beside_until`: what find_groups_beside gave (beside.h).
CertainPart find_certain_part(const Code& code, const PlannedCode& planned,
                              const Lifetimes& lifetimes, const std::vector<size_t>& beside_until,
                              const Library& library, const Frame& frame);

}  // namespace janus::execute
