// The variables of a structured program, and where they are live.
//
// Nodes name the sources of an input, of which the latest counts. That is a variable, to which each
// source assigns. Making SSA form of it asks what a block may assign, and what is read afterwards.
#pragma once

#include <set>
#include <span>
#include <tuple>

#include "trace/slots.h"

namespace janus::trace {

using VariableId = uint32_t;
using VariableSet = std::set<VariableId>;

struct Variable {
  enum class Kind : uint8_t {
    value,      ///< the latest of an input's sources
    untaken,    ///< whether an early feed has not been used yet
    decisions,  ///< how many decisions have been read
    slot,       ///< how many feeds or numbers of a slot have been read
    landing,    ///< where the path of a level goes on
    fetched,    ///< the list of what a result was, in the order of execution
    contents,   ///< what a cell holds
  };
  Kind kind = Kind::value;
  std::vector<Source> sources;  ///< value: sorted
  Source source;                ///< untaken: the slot; fetched: the result; contents: the cell
  uint32_t number = 0;  ///< the level; the slot, also of a value with a feed among its sources

  friend bool operator<(const Variable& a, const Variable& b) {
    return std::tie(a.kind, a.number, a.source, a.sources) <
           std::tie(b.kind, b.number, b.source, b.sources);
  }
};

class Variables {
 public:
  Variables(const Nodes& nodes, const Names& names, const SlotUses& slots);

  size_t size() const { return variables_.size(); }
  const Variable& operator[](VariableId id) const { return variables_[id]; }
  VariableId id(const Variable& variable) const { return ids_.at(variable); }

  /// The variable that an input reads; kNone if it reads a cell, a feed or a number and nothing
  /// else.
  VariableId read_by(NodeId node, uint32_t input) const { return reads_[node][input]; }
  /// Those that have this source, and get its value where it is executed.
  const std::vector<VariableId>& assigned_by(const Source& source) const;
  /// Those whose early feed is not the latest source any more when this source is executed.
  const std::vector<VariableId>& untaken_until(const Source& source) const;
  /// The one among these sources that is an early feed's slot, if the others replace the feed there
  /// too: then the feed is the value until they do. Else null.
  const Source* early_slot(const std::vector<Source>& sources) const;
  bool has(const Variable& variable) const { return ids_.contains(variable); }
  /// What is read at the end of the iteration.
  const VariableSet& results() const { return results_; }

  /// The variables that the statements may assign.
  VariableSet assigned(const Statements& statements) const;
  /// The variables that are live in front of the statements, where `live` are behind them.
  VariableSet live_before(std::span<const Statement> statements, VariableSet live) const;
  /// The variables that are live where a trip of the loop begins or the loop ends.
  VariableSet live_around(const Statement& loop, const VariableSet& behind) const;

 private:
  /// What an event assigns: in the course of an input, or (kNone) by its results. `perhaps`: it may
  /// leave the variable as it is.
  struct Assignment {
    VariableId variable;
    uint32_t input;
    bool perhaps;
  };

  void add_node(NodeId id);
  VariableId add_input(const Input& input);
  void add_flag(const Source& slot);
  VariableId add(Variable variable);
  std::vector<Assignment> assignments_of(NodeId id) const;
  std::vector<VariableId> exposed_in(NodeId id) const;
  void step_back(const Statement& statement, VariableSet& live) const;

  const Nodes& nodes_;
  const Names& names_;
  const SlotUses& slots_;
  std::vector<Variable> variables_;
  std::map<Variable, VariableId> ids_;
  std::map<Source, std::vector<VariableId>> by_source_, untaken_;
  std::vector<std::vector<VariableId>> reads_;        // by node and input
  std::vector<std::vector<Assignment>> assignments_;  // by node
  std::vector<std::vector<VariableId>> exposed_;      // by node: what it reads of what was before
  VariableSet results_;
};

}  // namespace janus::trace
