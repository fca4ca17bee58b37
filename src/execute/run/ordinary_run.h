// Runs instructions with memory allocated as it is needed: the first run for given sizes, which
// learns what a plan has to know, and every run of programs with control flow.
#pragma once

#include <span>
#include <string_view>

#include "execute/code/code.h"
#include "execute/frame/frame.h"

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
  bool settle_results();

 private:
  // What is put off (ordinary_run.cpp):
  bool put_off(const Instruction& instruction);
  bool compute_rows();
  bool run_rows(const Sequence& inner, RowsOfNumber* known);
  Repeated* repeated(const Instruction& instruction);
  bool compute_last_rows(const Instruction& instruction);
  bool settle_outputs(const Instruction& instruction);
  bool settle(Slot& slot);
  bool settle(std::span<const uint32_t> slots);
  bool run(const Sequence& sequence);
  bool run(const Instruction& instruction);
  bool run_guard(const Instruction& instruction);
  bool run_size(const Instruction& instruction);
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
  void leave_round(const Instruction& instruction);
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

/// A copy of a tensor, with the same layout where that has no gaps.
Slot cloned(Library& library, const Slot& tensor, bool contiguous = false);

/// Slot of cell number `cell`: cells have slots of their own after those of the values.
inline uint32_t cell_slot(const Code& code, size_t cell) {
  return static_cast<uint32_t>(code.slot_count + cell);
}

/// Puts inputs and cells into their slots.
void enter(const Code& code, Frame& frame, std::span<const Slot> inputs,
           std::span<const Slot> cells);

/// For how many writes in place a `commit` stands in this run, and whether a `rebind` is to a
/// value.
int64_t writes_of(const Write& commit, const Frame& frame);
bool is_rebound(const Write& rebind, const Frame& frame);
/// How result `index` has to lie if that is known, and otherwise than it does.
std::optional<std::vector<int64_t>> other_strides(const Code& code, size_t index,
                                                  const Layout& layout, const Frame& frame);
/// How what a `rebind` is to lies, a value of these sizes.
std::vector<int64_t> rebound_strides(const Write& rebind, std::span<const int64_t> sizes,
                                     const Frame& frame);

/// Whether a `guard`'s operand holds.
bool guard_holds(const Slot& slot, const Library& library);
Failure guard_failure(const graph::Node& guard);
Failure failure_of(Failure::Kind kind, const graph::Node& node, std::string_view what);
/// A number or a dimension that does not fit 64 bits, or has no value.
Failure overflow(const graph::Node& node);
/// Why run_number() gave nothing.
Failure failure_of_number(const graph::Node& node, const Operands& operands);
/// Calls nest more deeply than the run may.
Failure too_deep(const graph::Node& call);
/// A result lies otherwise than in the run that the plan was made from.
void give_up_as_lying_otherwise(const graph::Node& node, Frame& frame);
/// Evaluates a `size` node; false on overflow.
bool evaluate_size(const graph::Node& node, const SymbolValues& symbols, Slot& result);

/// After an ordinary run: gives out results and rebound values, writes the cells.
void finish(const Code& code, Library& library, Frame& frame, std::span<const Slot> cells,
            std::span<Slot> results, std::span<Slot> rebound);

}  // namespace janus::execute
