// Inter-operator parallelism: finds operations that can run side by side, such as the two matrix
// products of a linear layer's gradients.
//
// Small products are faster one on each thread than one after the other on all threads.
#pragma once

#include <cstddef>
#include <vector>

#include "execute/frame/frame.h"
#include "execute/plan/planned_code.h"

namespace janus::execute {

/// Moves operations that can run side by side next to each other, as many as there are threads;
/// gives, for each instruction, where those end that it runs beside: behind itself if it runs
/// alone.
std::vector<size_t> find_groups_beside(PlannedCode& code, const Frame& frame);

/// The first of the operations that this one runs beside, by what find_groups_beside gave: itself
/// if it runs alone.
size_t first_beside(const std::vector<size_t>& until, size_t position);

}  // namespace janus::execute
