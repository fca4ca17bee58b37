// An instance of a program: all that runs on operands of one combination of sizes share, and that
// only one run can use at a time. Its first run is ordinary and learns; from the second one on it
// follows a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/code/code.h"
#include "execute/code/symbols.h"
#include "execute/frame/frame.h"
#include "execute/library/heap.h"
#include "execute/library/library.h"
#include "execute/memory/shared_arena.h"
#include "execute/memory/tensor_pool.h"
#include "execute/plan/plan.h"
#include "execute/program/expected_operands.h"

namespace janus::execute {

class Instance {
 public:
  const bool may_plan;

  Instance(const Code& code, const Symbols& symbols, Library& library, const Heap* heap,
           std::span<const Slot> inputs, std::span<const Slot> cells, bool may_plan, bool is_first);

  bool accepts(std::span<const Slot> inputs, std::span<const Slot> cells) const;

  void run(std::span<const Slot> inputs, std::span<const Slot> cells, std::span<Slot> results,
           std::span<Slot> rebound, int64_t deepest_call, Findings* findings);

  /// What an instance can do without between its runs.
  struct Spare {
    std::vector<Slot> slots;
    std::vector<Repeated> repeated;
    Rows rows;
    std::vector<TensorPool> tensors;
  };

  /// Hands that over, as a run of other sizes follows: there may never be a second one of these.
  /// With a plan there was one, and what was found out meanwhile is kept, but no more than a few
  /// tensors: each of many instances would hold those of a whole run.
  Spare rest();

  /// Before a run: its plan's memory may be another's now.
  bool try_hold_memory() { return arena_ == nullptr || arena_->try_hold(); }

  /// After a run, whatever became of it.
  std::optional<Failure> leave(std::optional<Failure> thrown);

  /// Whether a tensor lay otherwise than planned, and a program would have seen that.
  bool lies_otherwise() const { return frame_.lies_otherwise; }
  /// Of the last run.
  struct Timing {
    double seconds = 0;  ///< 0: a plan was still to be made
    double started = 0;  ///< on the steady clock
  };
  const Timing& timing() const { return timing_; }

  std::string describe() const;
  /// Null before there is one.
  const Plan* plan_made() const { return plan_.get(); }

 private:
  void bind_operations();
  bool has_bound_numbers(std::span<const Slot> inputs) const;
  void move(std::span<const Slot> inputs);
  int64_t bytes_held() const;
  void make_frame();
  void make_frame_slots();
  bool timed(auto& run, auto&... arguments);
  void run_ordinarily(std::span<const Slot> cells, std::span<Slot> results,
                      std::span<Slot> rebound);
  void give_back_memory();
  void run_planned(std::span<Slot> results, std::span<Slot> rebound);
  void plan();

  const Code& code_;
  const Symbols& symbols_;
  Library& library_;
  const Heap* heap_;
  Frame frame_;
  ExpectedOperands expected_;
  bool moves_ = false;  ///< parts lie within their tensors, and may lie elsewhere in each run
  std::vector<int64_t> bound_numbers_;  ///< those that operators on parts are bound for
  std::unique_ptr<RandomState> random_;
  std::shared_ptr<SharedArena> arena_;  ///< of the plan
  std::unique_ptr<Plan> plan_;
  Timing timing_;
  int runs_to_clear_up_;  ///< after which free memory is given back
  bool learned_ = false;
};

}  // namespace janus::execute
