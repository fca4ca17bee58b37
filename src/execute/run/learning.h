// Shape and alias inference by execution: the first run notes each slot's layout, and whose memory
// it lies in.
#pragma once

#include "execute/code/code.h"
#include "execute/frame/frame.h"

namespace janus::execute {

/// Learns the layouts of inputs and cells. That two of them share memory in this run says nothing
/// of the next: where one is written, the entry has made sure that none do, but for an input that
/// is the written tensor itself, in every run.
void learn_operands(const Code& code, Frame& frame, const Library& library);

/// Throws if an opaque operator has given other sizes than the graph says. A run that learns looks
/// at every instruction's.
void check_opaque_results(const Instruction& instruction, const Frame& frame,
                          const Library& library);

/// Learns what an instruction has given: how it lies, and in the memory of which operand, if any.
void learn(const Instruction& instruction, Frame& frame, const Library& library);

/// Whether all of an operator's results lie in its operands' memory.
bool gives_views(const Instruction& instruction, const LearnedSlots& learned);
/// Whether each result is a tensor with memory of its own, without gaps (or none).
bool makes_own_results(const Instruction& instruction, const LearnedSlots& learned);

/// A tensor that the side of an `if` which was taken leaves undefined: it is taken to be
/// contiguous.
void expect_undefined(uint32_t slot, const graph::Value& value, Frame& frame);

/// Whether a tensor with that layout is of the value's type in this run.
bool has_type(const Layout& layout, const graph::Value& value, const Frame& frame);

}  // namespace janus::execute
