// A dry run of the sides of an `if`: infers the layouts of both before they are taken.
//
// Which of the sides the first run takes says nothing of the other. Both are gone through once when
// the plan is made: kernels say what they give, operators that look at no element to decide whether
// they raise are called with tensors of zeros. Nothing else happens; what they draw, the caller
// puts back.
#pragma once

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/memory/arena.h"

namespace janus::execute {

class Rehearsal {
 public:
  Rehearsal(Library& library, Frame& frame);
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  /// Notes in the frame what both sides compute. False: that can't be known before they are taken.
  bool learn_sides(const Instruction& choose);
  /// Whether either side gives what lies as the results do, if a program sees how they lie.
  bool lies_as_its_sides(const Instruction& choose) const;

 private:
  bool learn_side(const Sequence& side);
  bool learn_instruction(const Instruction& instruction);
  bool learn_kernel(const Instruction& instruction);
  bool learn_operation(const Instruction& instruction);
  bool learn_choice(const Instruction& choose);
  bool is_known(uint32_t slot, const graph::Value& value) const;
  void stand_in(uint32_t slot, const graph::Value& value);

  Library& library_;
  Frame& frame_;
  std::vector<Slot> slots_;    ///< the frame's own, meanwhile
  std::vector<Memory> zeros_;  ///< the largest at the end: what stands in for tensors lies there
  int64_t zero_bytes_ = 0;
};

}  // namespace janus::execute
