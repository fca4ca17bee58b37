// Static memory planning: decides where the memory of every value of a plan lies.
//
// Tensors that share memory are one piece of it (lifetimes.h), and each piece has one place
// (Place). The decisions, each from those before it:
//
// - The arena: what kernels, copies and operators make for the graph alone lies there.
// - Writes in place: what is computed for a cell behind the no-fail point (certainty.h) lies in the
//   cell's own memory, if nothing reads the old contents afterwards.
// - Gifts: what leaves the graph does so as it is, or as a copy if its memory is a cell's or an
//   input's, or was given away before. A rebound value may be computed into the tensor that it
//   takes the place of.
// - Buffers: a result takes over the memory of an operand that is read just where it is written and
//   that nothing needs afterwards; all others lie where nothing else lives then (arena.h).
//
// planner.cpp makes the steps that bring this about.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/memory/arena.h"
#include "execute/plan/lifetimes.h"
#include "execute/plan/planned_code.h"
#include "execute/plan/sides.h"

namespace janus::execute {

/// Where a piece of memory lies.
enum class Place : uint8_t {
  outside,  ///< input or cell: where it is differs from run to run
  fresh,    ///< made anew at each run
  arena,    ///< in the arena, always at the same address
  cell      ///< written into a cell's memory
};

/// How the results of an operator come to their memory.
enum class Making : uint8_t {
  view,    ///< they lie in that of its operands
  into,    ///< it writes into tensors that it is given
  placed,  ///< it makes them itself, some of them in memory that the plan has chosen
  fresh    ///< it makes them itself
};

/// The memory of one tensor.
struct Stretch {
  uint32_t root = 0;             ///< outside of the arena
  int64_t begin = -1, end = -1;  ///< in the arena

  bool overlaps(const Stretch& other) const {
    if (begin < 0 || other.begin < 0) return begin == other.begin && root == other.root;
    return begin < other.end && other.begin < end;
  }
};

/// A copy of a value that leaves the graph.
struct Gift {
  uint32_t value = 0;
  uint32_t clone = 0;  ///< slot of the copy
  Layout layout;
  bool early = true;  ///< copied before the first write
};

/// What a run hands out, as slots.
struct Leaving {
  /// The cell gets the value's elements.
  struct Commit {
    uint32_t cell = 0, value = 0;
  };
  std::vector<uint32_t> results, rebound;
  std::vector<uint32_t> replaced;  ///< by rebound value: for the tensor that it takes the place of
  std::vector<Gift> gifts;         ///< the copies among all these
  std::vector<Commit> commits;     ///< what is not computed in the cell's memory
};

class MemoryPlan {
 public:
  /// From instruction `certain_begin` on nothing can fail. Copies get new slots in the frame.
  MemoryPlan(const Code& code, const PlannedCode& planned, const Lifetimes& lifetimes,
             size_t certain_begin, Frame& frame);

  // --- a slot's tensor
  Place place(uint32_t slot) const { return piece(slot).place; }
  /// In Place::cell: slot of the cell.
  uint32_t cell(uint32_t slot) const { return piece(slot).cell; }
  /// In Place::arena: where in it the first element lies, in bytes, unless that moves.
  int64_t offset(uint32_t slot) const;
  int64_t arena_bytes() const { return arena_bytes_; }
  /// Whether the slot's tensor is the one that its memory was made for, in the arena.
  bool is_made_in_arena(uint32_t slot) const {
    return is_tensor(slot) && learned(slot).root == slot && place(slot) == Place::arena;
  }
  Stretch stretch(uint32_t slot) const;
  /// Whether two tensors have the same elements in the same order, in the same memory.
  bool is_same(uint32_t one, uint32_t other) const;

  // --- instructions
  /// Only of operators.
  Making making(const Instruction& operation) const;
  /// Whether its results are written into memory that it is given.
  bool is_given_memory(const Instruction& instruction) const;

  // --- what leaves the graph
  const Leaving& leaving() const { return leaving_; }
  /// Whether the slot's tensor may outlive the run, so that it can't be one of the plan's own.
  bool leaves(uint32_t slot) const { return leaves_.contains(slot); }
  /// Slot of the tensor that the value is computed into if nobody else refers to that.
  std::optional<uint32_t> replaced_by(uint32_t slot) const;

 private:
  struct Piece {
    Place place = Place::fresh;
    size_t buffer = SIZE_MAX;
    uint32_t cell = 0;
  };
  const Learned& learned(uint32_t slot) const { return frame_.learned[slot]; }
  bool is_tensor(uint32_t slot) const { return learned(slot).is_tensor(); }
  bool begins_with_root(uint32_t slot) const;
  const Piece& piece(uint32_t slot) const { return pieces_.at(learned(slot).root); }
  Piece& piece(uint32_t slot) { return pieces_.at(learned(slot).root); }

  void choose_places();
  void find_mixed(const Instruction& instruction);

  void choose_in_place_writes();
  bool may_write_in_place(const Write& write) const;
  bool may_write_at(size_t writer, uint32_t output, uint32_t cell) const;
  bool old_contents_unused_after(size_t writer, uint32_t output, uint32_t cell) const;
  bool reads_where_it_writes(const Instruction& instruction, uint32_t slot, uint32_t output,
                             uint32_t cell) const;
  bool changes_first_input(const Instruction& instruction) const;
  bool is_changed_in_place(const Instruction& instruction, uint32_t slot) const;
  bool exclude_each_other(size_t one, size_t other) const;

  void choose_gifts();
  std::set<uint32_t> written_roots() const;
  std::set<uint32_t> give_results(const std::set<uint32_t>& written);
  void give_rebound(std::set<uint32_t> given);
  void commit(const std::set<uint32_t>& written);
  bool may_replace(uint32_t slot) const;
  uint32_t clone(uint32_t slot);
  uint32_t clone(uint32_t slot, std::vector<int64_t> strides);
  uint32_t new_slot();

  void choose_buffers();
  size_t reusable_buffer(size_t position, uint32_t output) const;
  bool is_read_alike(const Instruction& instruction, uint32_t slot, uint32_t output) const;

  const Code& code_;
  const std::vector<Instruction>& instructions_;
  const Lifetimes& lifetimes_;
  const size_t certain_begin_;
  Frame& frame_;
  const std::vector<Standing> sides_;  ///< by instruction
  std::map<uint32_t, Piece> pieces_;   ///< by root
  std::set<uint32_t> mixed_;     ///< results in an operand's memory, of operators that are no views
  std::set<uint32_t> in_place_;  ///< values written into their cell
  std::set<uint32_t> leaves_;    ///< slots handed out as they are, or kept
  std::map<uint32_t, uint32_t> replacing_;  ///< a value, and the slot of what it may replace
  Leaving leaving_;
  std::vector<Buffer> buffers_;
  int64_t arena_bytes_ = 0;
};

}  // namespace janus::execute
