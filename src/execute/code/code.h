// A graph as code: the sequence of its body, its functions, and where constants, cells and objects
// stand among the slots. Nothing is known about sizes yet; lowering.h makes it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "execute/code/instruction.h"
#include "execute/code/moving_part.h"
#include "execute/values/slot.h"
#include "graph/graph.h"

namespace janus::execute {

/// A write to a cell after everything else: `commit` or `rebind`.
struct Write {
  const graph::Node* node = nullptr;
  uint32_t slot = 0;
  size_t cell = 0;
  /// Slot of the second operand: of `commit` a number of writes, of `rebind` whether it is to none.
  std::optional<uint32_t> second = {};
  bool keeps = false;  ///< a `rebind` that changes nothing, or is to none
};

/// A number or none that stands in the graph itself.
struct Constant {
  uint32_t slot = 0;
  Slot value;
};

struct Code {
  Sequence body;
  size_t tail = 0;  ///< index of the first instruction that may write into cells
  std::vector<Constant> constants;
  std::vector<std::pair<uint32_t, size_t>> cell_reads;  ///< slot of a `state` node, cell
  std::vector<Write> commits, rebinds;
  std::vector<const graph::Node*> operations;         ///< nodes to be bound by the library
  std::set<std::string> run_time_symbols;             ///< dimensions that get values in a run
  std::vector<const graph::Node*> heap_reads;         ///< nodes to be bound by the heap
  std::vector<uint32_t> read_kinds;                   ///< of those (findings.h)
  std::vector<std::pair<uint32_t, int64_t>> objects;  ///< slot of a known object, its number
  std::map<std::string, std::unique_ptr<Sequence>> functions;
  std::vector<std::string> cells;
  /// By result of the body: how it has to lie, where that is known and not in order.
  std::map<size_t, graph::Shape> result_strides;
  bool random = false;   ///< draws from the generator
  bool control = false;  ///< has nested blocks that are executed
  bool can_be_planned = true;
  bool hands_out_containers = false;  ///< frames leave the run, with what they keep
  bool needs_unlock = false;          ///< runs code that may take Python's lock itself
  bool uses_objects = false;          ///< has pointers to Python's objects, so it needs the lock
  bool has_rows = false;              ///< has `rows` instructions
  size_t slot_count = 0;
  size_t repeated_count = 0;
};

/// Slot of cell number `cell`: cells have slots of their own after those of the values.
inline uint32_t cell_slot(const Code& code, size_t cell) {
  return static_cast<uint32_t>(code.slot_count + cell);
}

/// Tells the body's instructions which parts are theirs.
void note_moving_parts(Code& code, const std::vector<MovingPart>& parts);

/// By cell: whether it is read by kernels of the body alone.
std::vector<bool> cells_of_kernels(const Code& code);

}  // namespace janus::execute
