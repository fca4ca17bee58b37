// Liveness: which instruction uses a slot last, so that its tensor can be freed or handed on there.
//
// In the body and in blocks a slot dies in the sequence that defines it. In a function it may die
// in any nested block, and a recursive call saves what lives across it.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "execute/code/instruction.h"

namespace janus::execute {

/// Fills `used_parameters` and `own_results` of a block.
void mark_uses(Sequence& sequence);
/// Fills `dead` and `moved_inputs`: values defined in the sequence itself, at their last use, but
/// for those that are `kept`.
void mark_dead(Sequence& sequence, const std::unordered_set<uint32_t>& kept);
/// In a function: when each value is needed for the last time, in whatever block that is, and what
/// calls put aside through which the function may be run again.
void mark_lives(const graph::Node& function, Sequence& sequence);

}  // namespace janus::execute
