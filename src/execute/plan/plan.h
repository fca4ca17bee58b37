// The plan of a program for one set of sizes: steps with every operand's memory decided.
//
// A plan is made after a first, ordinary run, from what that run learned: each slot's layout and
// whose memory it lies in. Values that stay inside the graph live in one arena, as tensors that
// are made once; views of them cost nothing at run time. What leaves the graph gets new memory at
// each run. Kernels write the new contents of cells into the cells' own memory where no step reads
// the old contents afterwards.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/frame/kernel_call.h"
#include "execute/library/library.h"
#include "execute/plan/kernel_batch.h"
#include "execute/plan/relayout.h"

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

/// Gives the memory for so many bytes of values that are there only while a run lasts.
using FindArena = std::function<char*(int64_t bytes)>;

class Plan {
 public:
  Plan(const Code& code, Library& library, Frame& frame, const FindArena& find_arena);

  /// Runs; inputs, cells and constants are in their slots. `replaceable`: tensors that rebound
  /// values may take the place of. False: frame.failure says why not, and nothing outside has
  /// changed.
  bool run(Library& library, Frame& frame, std::span<Slot> replaceable);
  /// After a run that succeeded: hands out results and rebound values.
  void give(Frame& frame, std::span<Slot> results, std::span<Slot> rebound);
  /// Clears the slots that do not belong to the plan.
  void clear(Frame& frame) const;
  std::string describe() const;

 private:
  friend class Planner;
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

    int64_t offset_in(const Frame& frame) const {
      return byte_offset + moved_bytes(moves, frame.first_elements);
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
  struct Skip {
    uint32_t condition = 0;  ///< its slot
    bool wanted = true;      ///< nothing is left out where the condition is this
    size_t steps = 0;
  };
  /// Keeps those instructions that steps refer to: of kernels and views they know all there is.
  void forget_other_instructions();
  bool run_steps(size_t begin, size_t end, Library& library, Frame& frame);
  bool run(const Step& step, Library& library, Frame& frame);
  static bool run_scalar(Step::Kind kind, const Instruction& instruction, Library& library,
                         Frame& frame);
  void arrange(const Step& step, Library& library, Frame& frame);
  void allocate(const Allocation& allocation, Library& library, Frame& frame) const;
  void run_group(Beside& group, Library& library, Frame& frame) const;
  bool run_operation(const Step& step, Library& library, Frame& frame);
  bool run_fresh(const Instruction& instruction, Library& library, Frame& frame);
  static void run_kernel(Call& call, Library& library, Frame& frame);
  static void run_batch(Batch& batch, Library& library, Frame& frame);
  bool run_placed(Placed& call, Library& library, Frame& frame);
  static void leave_places(const Placed& call, Library& library, Frame& frame);
  bool put_into_place(const Placed& call, Library& library, Frame& frame) const;
  /// Whether a result lies as in the first run, or can be made to.
  bool settle_layout(const Instruction& instruction, size_t output, Slot& made, Library& library,
                     Frame& frame) const;
  std::string describe(const Step& step) const;
  std::string describe_arrangement(const Step& step) const;

  const Code& code_;
  PlannedCode planned_;
  std::vector<Step> steps_;
  std::vector<Call> calls_;
  std::vector<Batch> batches_;
  std::vector<Placed> placed_;
  std::vector<Beside> besides_;
  std::vector<Skip> skips_;
  std::vector<View> views_;
  std::vector<Allocation> allocations_;
  std::vector<Transfer> copies_, adoptions_, hands_;
  std::vector<uint32_t> result_slots_, rebound_slots_;
  std::vector<uint32_t> replaced_slots_;  ///< by rebound value: what it may take the place of
  std::vector<uint32_t> transient_;
  char* arena_ = nullptr;
  std::vector<double> times_;  ///< least seconds of each step, with TORCHJANUS_LOG=time
  int64_t arena_bytes_ = 0;
  size_t first_write_ = 0;  ///< index of the first step that may write to a cell
};

}  // namespace janus::execute
