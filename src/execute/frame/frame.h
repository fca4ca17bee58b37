// The state of one run: its virtual registers, its control stack, the operators bound for its
// sizes, and what the first run learned of each register's memory.
#pragma once

#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "execute/code/symbols.h"
#include "execute/frame/activation.h"
#include "execute/frame/learned.h"
#include "execute/frame/repeated.h"
#include "execute/frame/rows.h"
#include "execute/library/failure.h"
#include "execute/library/findings.h"
#include "execute/library/heap.h"
#include "execute/library/operation.h"

namespace janus::execute {

struct Frame {
  std::vector<Slot> slots;
  std::vector<std::unique_ptr<Operation>> operations;
  std::vector<std::unique_ptr<HeapRead>> heap_reads;
  std::vector<Repeated> repeated;  ///< by Instruction::repeated
  LearnedSlots learned;            ///< filled by the first run
  SymbolValues symbols;
  std::vector<int64_t> first_elements;  ///< of moving parts; none where they stay
  Activations activations;
  Rows rows;
  int64_t deepest_call = 0;      ///< how deeply calls may nest in this run
  Findings* findings = nullptr;  ///< of this run; null: nobody asks
  /// Memory of the plan's own tensors: nothing that outlives a step may refer to it.
  std::unordered_set<const void*> borrowed;
  /// Memory of the cells that the run writes; filled when it is asked for.
  std::unordered_set<const void*> written;
  std::optional<Failure> failure;
  bool is_certain = false;      ///< the run can't be given up any more
  bool lies_otherwise = false;  ///< given up as a tensor lies as in no run before
  const graph::Node* running =
      nullptr;  ///< the last operator or kernel that was called: one may throw

  /// A result lies otherwise than in the run that the plan was made from.
  void give_up_as_lying_otherwise(const graph::Node& node);
};

}  // namespace janus::execute
