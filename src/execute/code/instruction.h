// Instructions over slots, and sequences of them: what a node of a graph becomes.
//
// The slot of a value is its id. Every nested block is a sequence of its own over the same slots,
// functions as well: a call that may come back to the function that it stands in puts aside what
// that still needs of its slots, and gets it back afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "kernels/kernel.h"
#include "ops/number.h"

namespace janus::execute {

enum class Action : uint8_t {
  kernel,     ///< a fused native kernel
  operation,  ///< an operator of the library
  number,     ///< an operator on Python numbers
  size,       ///< the value of a dimension expression
  dimension,  ///< gives a dimension symbol its value; never in plans
  item,       ///< the one element of a tensor as a number
  guard,      ///< gives the run up unless its operand is true
  container,  ///< an operator on frames and lists
  relayout,   ///< copies into memory of another layout; only in plans
  skip,       ///< leaves out the next instructions, a side of an `if`; only in plans
  give,       ///< what a side gives as a result of its `if`; only in plans
  heap,       ///< reads something of an object of Python's
  identity,   ///< whether two objects are one
  choose,     ///< `if`
  loop,       ///< `while`
  rows,       ///< put off, to be computed with others of its kind
  call        ///< runs a function's block
};

struct Instruction;

/// A block: instructions in the order in which they are executed.
struct Sequence {
  std::vector<uint32_t> parameters;
  std::vector<Instruction> instructions;
  std::vector<uint32_t> results;
  std::vector<bool> used_parameters;  ///< by an instruction, or as a result
  std::vector<bool> own_results;      ///< handed over: nothing else needs them any more
};

struct Instruction {
  Action action = Action::operation;
  const graph::Node* node = nullptr;
  std::vector<uint32_t> inputs;   ///< slots of the node's operands
  std::vector<uint32_t> outputs;  ///< slots of its results
  std::vector<uint32_t> used;     ///< inputs and what nested blocks use from outside
  std::vector<uint32_t> dead;     ///< slots that nothing uses after this instruction
  std::shared_ptr<const kernels::Kernel> kernel;
  size_t operation = 0;        ///< index among library operators or heap reads; of `rows` the kind
  bool is_view = false;        ///< an operator that gives a view of its only operand
  size_t repeated = SIZE_MAX;  ///< kernels and operators in blocks: index among those
  size_t repeated_in_block = 0;   ///< the same within the block
  size_t moving_part = SIZE_MAX;  ///< index among the moving parts
  size_t moving_dimension = 0;    ///< of the operand
  ops::NumberFunction number = nullptr;
  bool keeps_operands = false;  ///< a frame made as it runs, in a block too, refers to their memory
  bool is_relaid = false;       ///< operands lie otherwise than in the first run: so may results
  bool shows_strides = false;   ///< of results: a program sees how they lie (shown_strides.h)
  std::vector<Sequence> blocks;
  std::vector<bool> moved_inputs;  ///< nothing needs them afterwards
  // Of skips:
  bool wanted = true;    ///< nothing is left out where the condition is this
  size_t side_size = 0;  ///< how many instructions the side has
  size_t rest_size = 0;  ///< how many instructions come before the end of the whole `if`
  // Of `rows`:
  size_t sums = 0;  ///< how many of the last operands are added to
  uint32_t rank = 0;
  size_t least_rows = 0;  ///< with fewer it takes less time to run the second block for each
  // Of calls:
  const Sequence* function = nullptr;
  std::vector<uint32_t> saved;  ///< what is put aside

  bool is_control() const {
    return action == Action::choose || action == Action::loop || action == Action::call;
  }
  /// What it reads: its operands, and what its blocks take from outside.
  const std::vector<uint32_t>& operands() const { return is_control() ? used : inputs; }
  bool gives(uint32_t slot) const {
    return std::find(outputs.begin(), outputs.end(), slot) != outputs.end();
  }
};

}  // namespace janus::execute
