// Which work is worth several threads: as much as outweighs what it costs, on this machine, to hand
// it out and to wait for it. That is measured when it is first needed, for each number of threads,
// and kept on disk for the next process. What is computed does not depend on it.
//
// Work is counted in simple instructions for one element (LoopNest::cost): a cycle of the processor
// does as many of them as a vector has lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/options.h"
#include "base/policy.h"
#include "jit/tuning_cache.h"

namespace janus::kernels {

/// Beside kSwitches, as it says nothing about graphs.
inline constexpr Switch kThreadCostSwitch{
    "thread_cost", "what threads cost on this machine is measured; off: a usual figure"};

/// How much a thread has to be given at least.
int64_t work_per_thread();

bool outweighs_handing_out(int64_t work);
/// Whether so much is worth more threads than this one.
inline bool is_worth_sharing(int64_t work) {
  return work >= 2 * policy::kLeastWorkPerThread && outweighs_handing_out(work);
}

/// Of work in so many equal pieces: how many a thread has to be given at least, which may be all.
int64_t least_pieces(int64_t work, int64_t pieces);

/// The cycles of handing out that are kept under this name, or else those that are measured. These
/// are kept from then on, unless they say that the machine was busy: then they count only here.
int kept_or_measured(jit::TuningCache& kept, const std::string& which,
                     const std::function<std::optional<double>()>& measure);

}  // namespace janus::kernels
