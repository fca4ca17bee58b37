// The interpreter of code: executes instructions one by one, with memory allocated as it is needed.
//
// The first run for given sizes is such a run and learns what a plan has to know. What no plan
// holds, loops and calls above all, is always run in this way (control_run.cpp).
#pragma once

#include <span>

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/library/library.h"

namespace janus::execute {

class OrdinaryRun {
 public:
  OrdinaryRun(const Code& code, Library& library, Frame& frame, bool learn)
      : code_(code), library_(library), frame_(frame), learn_(learn), puts_off_(code.has_rows) {}

  /// Runs the body; inputs, cells and constants are in their slots. False: frame.failure says why
  /// not, and nothing outside has changed.
  bool run();
  /// Runs one `if`, `while`, call or read of the heap that stands in the body, so that its results
  /// are tensors of their own. Where their layouts are known already (Frame::learned), they get
  /// those.
  bool run_control(const Instruction& instruction);
  /// Computes what was put off, and puts tensors in the place of what is not known to be more than
  /// an invocation's result, for those outside of the run.
  bool materialise_results();

 private:
  // What is put off (ordinary_run.cpp):
  bool put_off(const Instruction& instruction);
  bool compute_rows();
  bool run_rows(const Sequence& inner, RowsOfNumber* known);
  Repeated* repeated(const Instruction& instruction);
  bool compute_last_rows(const Instruction& instruction);
  bool materialise_outputs(const Instruction& instruction);
  bool materialise(Slot& slot);
  bool materialise(std::span<const uint32_t> slots);
  bool run(const Sequence& sequence);
  bool run(const Instruction& instruction);
  bool run_dimension(const Instruction& instruction);
  bool run_heap(const Instruction& instruction);
  bool is_written(const Slot& value);
  // Control flow (control_run.cpp):
  bool run_blocks(const Instruction& instruction);
  bool enter(const Instruction& instruction);
  void enter_choice(const Instruction& instruction);
  void enter_loop(const Instruction& instruction);
  bool enter_call(const Instruction& instruction);
  void start(const Sequence& sequence, const Instruction& instruction, Activation::Kind kind);
  void start_test(const Instruction& instruction);
  void leave();
  void leave_choice(const Activation& activation);
  void leave_test(const Instruction& instruction);
  void leave_iteration(const Instruction& instruction);
  void leave_call(const Instruction& instruction);
  void finish(const Instruction& instruction);
  bool give_memory(const Instruction& instruction);
  void run_kernel(const Instruction& instruction);
  void run_kernel(const Instruction& instruction, Repeated& repeated);
  void prepare_kernel(const Instruction& instruction, Repeated& repeated);
  void run_operation(const Instruction& instruction);
  void call_operation(const Instruction& instruction);
  void view_operand(const Instruction& instruction, Operation& operation, Repeated& repeated);
  bool take_first_input(const Instruction& instruction);
  void note_outputs(const Instruction& instruction, Repeated& repeated);

  const Code& code_;
  Library& library_;
  Frame& frame_;
  bool learn_;
  bool puts_off_;  ///< what `rows` instructions compute
  bool in_block_ = false;
  RowsOfNumber* rows_ = nullptr;  ///< of the `rows` instruction that is computed
};

}  // namespace janus::execute
