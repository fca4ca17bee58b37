// Dynamic batching: `rows` nodes (ops/structure.cpp) that a run meets are deferred, and invocations
// that do not need each other are computed together.
//
// What an invocation gives is known by its number (make_row) until somebody has to look at it.
// Those of the smallest rank are computed first, as no other leads to them; of one rank an
// invocation is of the level behind those whose results it takes. All of one rank, level and kind
// are one batch; last come those that only add to sums, by ranks, one batch for all levels.
//
// A batch's results are freed when nothing takes rows of them any more: no invocation that waits,
// and no slot or container of the run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "execute/code/instruction.h"
#include "execute/code/symbols.h"
#include "execute/frame/repeated.h"
#include "execute/library/library.h"
#include "execute/values/container.h"

namespace janus::execute {

/// What is known of a `rows` instruction for one number of rows.
struct RowsOfNumber {
  std::vector<Repeated> repeated;  ///< by Instruction::repeated, from the block's first on
  std::vector<Layout> layouts;     ///< of the parameters that are stacked
  std::vector<Layout> rows;        ///< the same without the first dimension
  std::vector<TensorPool> pools;   ///< for the same
  void forget_large_tensors();
  /// Gives up a tensor: what leaves the run must have no other owner.
  void forget(const Slot& tensor);
  /// About how many bytes its tensors take.
  int64_t bytes_held() const;
  /// Hands over all.
  void take_tensors(std::vector<TensorPool>& to);
};

/// Where rows stand beside the operands of invocations, some of them in containers.
using RowHolders = std::array<std::span<const Slot>, 3>;

class Rows {
 public:
  /// Notes an invocation of a `rows` instruction. False: it needs a sum that has to be computed
  /// first.
  bool put_off(const Instruction& instruction, Slot* slots);

  bool is_waiting() const { return first_waiting_ < invocations_.size(); }
  bool is_computed(const Slot& row) const { return invocation_of(row) < first_waiting_; }

  /// Computes what is waiting: `run` a sequence whose parameters are in their slots, for many rows
  /// with what is known for that number, else with null.
  template <class Run>
  bool compute(Library& library, Slot* slots, const RowHolders& holders, SymbolValues& symbols,
               Run&& run) {
    const std::vector<Group> groups = take_waiting();
    expect_reads(groups, holders);
    for (const Group& group : groups) {
      Given& given = given_[group.number];
      given.first_batch = batches_.size();
      if (!compute(group, library, slots, symbols, run)) return false;
      given.batches = batches_.size() - given.first_batch;
      note_reads(group);
      forget_operands(group);
    }
    return true;
  }

  /// The tensor of a row that is computed; it shares memory with others.
  Slot tensor(const Slot& row, Library& library) const;
  /// The same where nothing else will ask for it: a sum is handed over.
  Slot take_tensor(const Slot& row, Library& library);

  /// The same in memory of its own: for containers, as they may leave the run.
  Slot own_tensor(const Slot& row, Library& library);

  void clear();

  /// Between runs: about how many bytes it holds.
  int64_t bytes_held() const;
  /// Between runs: hands over what it holds, and keeps what it knows.
  Rows rest(std::vector<TensorPool>& tensors);

 private:
  struct Invocation {
    const Instruction* instruction = nullptr;
    uint32_t first_operand = 0;
    uint32_t rank = 0, level = 0;
    uint32_t group = 0;  ///< once it is about to be computed
    uint32_t batch = 0;  ///< once computed
    uint32_t row = 0;    ///< in the batch
  };
  /// Invocations that are computed at once.
  struct Group {
    const Instruction* instruction = nullptr;
    std::vector<uint32_t> members;
    uint32_t number = 0;
    bool is_rest = false;  ///< of a group that is computed piece by piece: the last, shorter one
  };
  /// What becomes of the results of a group; of one that adds to sums there are none.
  struct Given {
    size_t first_use = 0;
    size_t first_batch = 0, batches = 0;  ///< its own
  };
  /// Of one result of a group.
  struct Use {
    uint32_t reads = 0;  ///< operands of what waits that are rows of it
    bool is_held = false;
  };
  /// What a group gave, or a single invocation: that has no dimension of rows.
  struct Batch {
    bool is_single = false;
    std::vector<Slot> results;
    std::vector<const char*> data;  ///< null: not in order
    std::vector<int64_t> strides;   ///< of each result: from row to row; not of a single one
    size_t count = 0;
    std::vector<Layout> row;  ///< of each result; not of a single one
  };
  /// A value that invocations add to.
  struct Sum {
    Slot value;         ///< a tensor, or the row that it begins with
    uint32_t last = 0;  ///< the invocation that added to it last
  };

  static uint32_t invocation_of(const Slot& row) {
    return static_cast<uint32_t>(row_number(row) >> 16);
  }
  static size_t result_of(const Slot& row) { return static_cast<size_t>(row_number(row) & 0xffff); }
  const Slot* operands_of(uint32_t invocation) const {
    return operands_.data() + invocations_[invocation].first_operand;
  }
  const Instruction& representative(const Instruction& instruction);
  void follow(Invocation& invocation, const Invocation& giver) const;
  uint32_t sum_operand(const Slot& operand);
  uint32_t sum_of(const Slot& row) const;
  template <class Run>
  bool compute(const Group& group, Library& library, Slot* slots, SymbolValues& symbols,
               Run&& run) {
    if (!are_stacked(group, library, symbols)) {
      for (const uint32_t number : group.members) {
        enter_single(invocations_[number], library, slots);
        if (!run(group.instruction->blocks[1], nullptr)) return false;
        leave_single(invocations_[number], library, slots);
      }
      return true;
    }
    const size_t at_once = rows_at_once(group, symbols);
    if (at_once >= group.members.size())
      return compute_stacked(group, library, slots, symbols, run);
    for (size_t first = 0; first < group.members.size(); first += at_once)
      if (!compute_stacked(part_of(group, first, at_once), library, slots, symbols, run))
        return false;
    return true;
  }
  template <class Run>
  bool compute_stacked(const Group& group, Library& library, Slot* slots, SymbolValues& symbols,
                       Run&& run) {
    RowsOfNumber& known = enter(group, library, slots, symbols);
    if (!run(group.instruction->blocks[0], &known)) return false;
    leave(group, known, library, slots);
    known.forget_large_tensors();
    return true;
  }
  std::vector<Group> take_waiting();
  Use* use_of(const Slot& row);
  template <class See>
  void see_operand_rows(const Group& group, See&& see) const;
  void expect_reads(const std::vector<Group>& groups, const RowHolders& holders);
  void find_held(const RowHolders& holders);
  void note_reads(const Group& group);
  void release_unread(const Given& given, size_t result);
  void forget_operands(const Group& group);
  RowsOfNumber& enter(const Group& group, Library& library, Slot* slots, SymbolValues& symbols);
  RowsOfNumber& of_number(const Group& group, const SymbolValues& symbols);
  bool are_stacked(const Group& group, Library& library, SymbolValues& symbols);
  static size_t rows_at_once(const Group& group, SymbolValues& symbols);
  static Group part_of(const Group& group, size_t first, size_t count);
  bool lies_in_order(const Slot& operand, const Layout& in_order, const Library& library) const;
  Slot stack(const Group& group, size_t operand, Library& library, RowsOfNumber& known) const;
  Slot part_of_batch(const Group& group, size_t operand, Library& library, const Layout& layout,
                     int64_t row_bytes) const;
  void leave(const Group& group, RowsOfNumber& known, Library& library, Slot* slots);
  void enter_single(const Invocation& invocation, Library& library, Slot* slots);
  void leave_single(Invocation& invocation, Library& library, Slot* slots);

  std::vector<Invocation> invocations_;
  std::vector<Slot> operands_;
  std::vector<Batch> batches_;
  std::vector<Sum> sums_;
  std::vector<Given> given_;  ///< by group
  std::vector<Use> uses_;
  size_t held_count_ = 0;  ///< how many rows stood elsewhere when they were looked for last
  bool releases_ = false;  ///< what is waiting now, as it is read
  std::unordered_map<int64_t, Slot> own_tensors_;  ///< one for all places where a row stands
  uint32_t first_waiting_ = 0;
  std::vector<const Instruction*> representatives_;  ///< by kind: whose block is run
  /// By kind and number of rows; kept from run to run. One stands for all large numbers, another
  /// for those of rests.
  std::vector<std::unordered_map<size_t, RowsOfNumber>> known_;
};

}  // namespace janus::execute
