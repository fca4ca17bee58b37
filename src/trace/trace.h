// A trace: what one iteration of a program did, operator by operator, as it ran imperatively.
//
// A program is run by Python one operator at a time. Each executed operator is an event: which
// operator with which constant attributes, where in the program it was called, which operands it
// had and of which types its results were. Traces of several iterations are merged into a
// TraceGraph (trace/trace_graph.h).
//
// An operand is a result of an earlier event, or it comes from outside of the iteration:
//
//   result   result r of event e of the same trace
//   feed     a tensor of Python's, numbered in the order of first use in the trace
//   cell     a storage that existed before and stays, by an id that is the same in each iteration
//   number   a Python number that may vary from iteration to iteration
//
// Writes to cells are events too (OperatorTable::write). They have one operand and no result. What
// was written last is what the cell holds after the iteration. An operand that is a cell is what it
// held before the iteration; what was written since then is a result of the event that made it.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/attribute.h"
#include "graph/type.h"

namespace janus::trace {

using OperatorId = uint32_t;  ///< position in an OperatorTable
using Location = uint64_t;    ///< where in the program: the frames up to the entry; opaque here
using CellId = uint64_t;

/// An operator with everything that is constant about a call of it.
struct Operator {
  std::string name;  ///< the overload: "aten::add.Tensor"
  /// The schema's arguments that are operands, in order, as in an `opaque` node: "self,other",
  /// "tensors*3" for a list of three.
  std::string operands;
  graph::Attributes attributes;  ///< all other arguments that do not have their default

  friend bool operator==(const Operator&, const Operator&) = default;
};

std::ostream& operator<<(std::ostream& out, const Operator& op);

/// Gives equal operators equal ids.
class OperatorTable {
 public:
  OperatorId intern(Operator op);
  /// The write of a cell.
  OperatorId write(CellId cell);
  /// The cell that the operator writes; null for all other operators.
  const CellId* written_cell(OperatorId id) const;
  const Operator& operator[](OperatorId id) const { return operators_[id]; }
  size_t size() const { return operators_.size(); }

 private:
  std::vector<Operator> operators_;
  std::unordered_map<std::string, std::vector<OperatorId>> by_text_;
  std::unordered_map<OperatorId, CellId> writes_;
};

/// What the numbers in traces stand for. Traces, the graph they are merged into, and what follows
/// it share one.
struct Names {
  OperatorTable operators;
  std::unordered_map<Location, std::string> locations;  ///< for people: "model.py:12"
  std::map<CellId, std::string> cells;                  ///< for `state` and `commit` nodes

  std::string location(Location location) const;
  std::string cell(CellId cell) const;
  /// "aten::add.Tensor at model.py:12"
  std::string call(OperatorId op, Location location) const;
};

struct Operand {
  enum class Kind : uint8_t { result, feed, cell, number };

  Kind kind = Kind::result;
  uint32_t index = 0;   ///< result: the event; feed: its number
  uint32_t result = 0;  ///< result: which one of the event
  CellId cell = 0;
  graph::Type type;  ///< of a feed, a cell (concrete sizes) or a number; not of results

  static Operand of_result(uint32_t event, uint32_t result = 0);
  static Operand feed(uint32_t number, graph::Type type);
  static Operand of_cell(CellId cell, graph::Type type);
  static Operand number(graph::Type type);

  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Event {
  OperatorId op = 0;
  Location location = 0;
  std::vector<Operand> operands;
  std::vector<graph::Type> results;  ///< concrete sizes
  /// Constant attributes that are sizes of tensors, or follow from them. They may vary.
  std::vector<int64_t> sizes;

  friend bool operator==(const Event&, const Event&) = default;
};

/// Python looked at a value.
struct Fetch {
  uint32_t event = 0, result = 0;

  friend bool operator==(const Fetch&, const Fetch&) = default;
};

struct Trace {
  std::vector<Event> events;  ///< in the order of execution
  std::vector<Fetch> fetches;

  friend bool operator==(const Trace&, const Trace&) = default;
};

/// Whether values of these types may come from one node: sizes may differ, unless one is 0 or 1,
/// on which broadcasting depends.
bool alike(const graph::Type& a, const graph::Type& b);

}  // namespace janus::trace
