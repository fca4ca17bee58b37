// Finds operations that can run side by side: matrix products that do not need each other, such as
// the two gradients of a linear layer. Each on one thread is faster than one after the other on all
// of them, where they are small.
#pragma once

#include <cstddef>
#include <vector>

#include "execute/frame/frame.h"
#include "execute/plan/relayout.h"

namespace janus::execute {

/// So many run side by side at most, on as many threads.
inline constexpr size_t most_beside = 16;

/// Moves operations that can run side by side next to each other, as many as there are threads;
/// gives, for each instruction, where those end that it runs beside: behind itself if it runs
/// alone.
std::vector<size_t> find_groups_beside(PlannedCode& code, const Frame& frame);

/// The first of the operations that this one runs beside, by what find_groups_beside gave: itself
/// if it runs alone.
size_t first_beside(const std::vector<size_t>& until, size_t position);

}  // namespace janus::execute
