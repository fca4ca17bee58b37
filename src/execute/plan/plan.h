// A static execution plan of a program for one set of sizes: steps with the memory of every operand
// decided.
//
// A plan is made after a first, ordinary run, from what that run learned: each slot's layout and
// whose memory it lies in. Intermediate values live in one arena, as tensors that are made once;
// views of them cost nothing at run time. What leaves the graph gets new memory at each run.
// Kernels write the new contents of cells into the cells' own memory where no step reads the old
// contents afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "execute/code/moving_part.h"
#include "execute/frame/kernel_call.h"
#include "execute/library/operation.h"
#include "execute/plan/kernel_batch.h"
#include "execute/plan/plan_picture.h"
#include "execute/plan/planned_code.h"
#include "execute/values/layout.h"

namespace janus::execute {

struct Step {
  enum class Kind : uint8_t {
    operation_into,    ///< the operator of instruction `index`, into its output slots
    operation_placed,  ///< placed call `index`: results of its own making, where they are planned
    beside,            ///< group `index` of operators, into their output slots
    operation_fresh,   ///< ... into tensors of its own making
    look,     ///< whether the operator of instruction `index`, which comes later, will fail
    kernel,   ///< kernel call `index`
    kernels,  ///< batch `index` of them
    number,
    size,
    item,
    guard,
    identity,
    skip,       ///< leave out steps, a side of an `if`, as skip `index` says
    hand,       ///< a number of transfer `index`: what a side gives
    control,    ///< what instruction `index` runs is not planned: `if`, `while`, calls, the heap
    container,  ///< the operator on containers of instruction `index`
    repoint,    ///< move view `index`, a tensor of the plan, to where its root is now
    share,      ///< make view `index` as a tensor that shares its root's memory
    allocate,   ///< make the tensor of allocation `index`
    adopt,      ///< output slot of an in-place write = the cell's tensor
    copy,       ///< copy `index`
    release     ///< clear slot `index`
  };
  Kind kind;
  uint32_t index = 0;
};

/// Steps, and what they refer to by index. planner.h makes a plan, planned_run.h runs it.
struct Plan {
  struct Patch {
    uint32_t operand = 0;  ///< of the kernel call
    uint32_t slot = 0;
    uint32_t call = 0;  ///< of a batch: which
  };
  struct Call {
    KernelCall call;
    std::vector<Patch> patches;
  };
  struct Batch {
    KernelBatch kernels;
    std::vector<Patch> patches;
  };
  struct View {
    uint32_t slot = 0, root = 0;
    int64_t byte_offset = 0;
    std::vector<Move> moves;

    /// From the root's first element, where the moving parts begin at these.
    int64_t offset(const std::vector<int64_t>& first_elements) const {
      return byte_offset + moved_bytes(moves, first_elements);
    }
  };
  struct Allocation {
    uint32_t slot = 0;
    std::optional<uint32_t> replaced;  ///< slot of a tensor that it may be, if there is one
    Layout layout;
  };
  struct Transfer {
    uint32_t to = 0, from = 0;
  };
  /// An operator that makes its results itself, in memory that the plan has chosen for some.
  struct Placed {
    uint32_t instruction = 0;
    std::vector<uint32_t> made;  ///< slots for what the operator gives, by output
    std::vector<Placement> placements;
    std::vector<size_t> moving;  ///< of these: in memory of the result's tensor, wherever it is
  };
  /// `count` instructions from `first` on. Whether they run side by side or one after the other is
  /// decided by the least time of some runs of each, for the number of threads that there are.
  struct Beside {
    uint32_t first = 0, count = 0;
    std::array<double, 2> seconds{};  ///< one after the other, side by side
    int runs = 0, threads = 0;
  };
  /// Seconds of each step in some of the runs, for reports.
  struct Samples {
    uint32_t runs = 0, timed = 0;
    std::vector<double> seconds;  ///< in all of those that were timed
  };
  struct Skip {
    uint32_t condition = 0;  ///< its slot
    bool wanted = true;      ///< nothing is left out where the condition is this
    size_t steps = 0;
  };

  PlannedCode code;
  std::vector<Step> steps;
  std::vector<Call> calls;
  std::vector<Batch> batches;
  std::vector<Placed> placed;
  std::vector<Beside> besides;
  std::vector<Skip> skips;
  std::vector<View> views;
  std::vector<Allocation> allocations;
  std::vector<Transfer> copies, adoptions, hands;
  std::vector<uint32_t> result_slots, rebound_slots;
  std::vector<uint32_t> replaced_slots;  ///< by rebound value: what it may take the place of
  std::vector<uint32_t> transient;
  char* arena = nullptr;
  std::vector<double> times;  ///< least seconds of each step, with TORCHJANUS_LOG=time
  Samples samples;
  int64_t arena_bytes = 0;
  PlanPicture picture;
  size_t first_write = 0;  ///< index of the first step that may write to a cell
};

/// What the runs that were timed say of the nodes. Kernels that run together have equal shares.
std::vector<TimedNode> timed_nodes(const Plan& plan);

}  // namespace janus::execute
