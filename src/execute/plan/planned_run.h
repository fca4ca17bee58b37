// Runs a plan: the loop that every call of a converted function ends up in.
//
// Each step is dispatched by its kind, with the memory of its operands decided; up to the first
// write to a cell a step may fail, and the run is given up without a trace.
#pragma once

#include <span>

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"
#include "execute/plan/plan.h"

namespace janus::execute {

class PlannedRun {
 public:
  PlannedRun(const Code& code, Plan& plan, Library& library, Frame& frame)
      : code_(code), plan_(plan), library_(library), frame_(frame) {}

  /// Runs; inputs, cells and constants are in their slots. `replaceable`: tensors that rebound
  /// values may take the place of. False: frame.failure says why not, and nothing outside has
  /// changed.
  bool run(std::span<Slot> replaceable);
  /// After a run that succeeded: hands out results and rebound values.
  void give(std::span<Slot> results, std::span<Slot> rebound) const;

 private:
  bool run_steps(size_t begin, size_t end);
  bool run(const Step& step);
  bool run_watched(size_t i);
  bool begin_sample();
  void arrange(const Step& step);
  void allocate(const Plan::Allocation& allocation);
  void run_group(Plan::Beside& group);
  bool run_operation(const Step& step);
  bool run_fresh(const Instruction& instruction);
  void run_kernel(Plan::Call& call);
  void run_batch(Plan::Batch& batch);
  bool run_placed(Plan::Placed& call);
  void leave_places(const Plan::Placed& call);
  bool put_into_place(const Plan::Placed& call);
  /// Whether a result lies as in the first run, or can be made to.
  bool ensure_layout(const Instruction& instruction, size_t output, Slot& made);

  const Code& code_;
  Plan& plan_;
  Library& library_;
  Frame& frame_;
  bool is_sampled_ = false;
};

/// Clears the slots that do not belong to the plan.
void clear_transient(const Plan& plan, Frame& frame);

}  // namespace janus::execute
