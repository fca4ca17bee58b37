// The nodes of a TraceGraph: traces with loops, merged. See trace/trace_graph.h.
//
// Nodes stand in levels. A level is an acyclic graph with one entry and one end: the iteration, or
// one trip of a loop. A loop is a node whose body is a level. An edge says which node may come
// next; where a node has several children, the one that comes is a decision of the program.
//
// Operands are names of values, not values: an input of a node has the sources that it may come
// from, and of those that were executed in the iteration, the latest is the value. With one source
// that is a plain use. With several it is what SSA form calls a phi, at a join or around a loop. At
// most one source is there from the beginning: a cell, or a feed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/folding.h"

namespace janus::trace {

using NodeId = uint32_t;
using LevelId = uint32_t;
using SlotId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;
inline constexpr NodeId kEnd = kNone - 1;    ///< the end of a level, among children
inline constexpr NodeId kEntry = kNone - 2;  ///< where a level begins, as a place to go on from

struct Source {
  enum class Kind : uint8_t {
    result,  ///< a result of a node
    slot,    ///< the feed that was first used by an input of a node
    cell,
    feed,    ///< one that is used for the first time
    number,  ///< a number of Python's
  };
  Kind kind = Kind::result;
  NodeId node = kNone;  ///< of results and slots
  uint32_t index = 0;   ///< which result, or which input
  CellId cell = 0;

  /// Whether it has its value when the iteration begins.
  bool is_early() const { return kind == Kind::cell || kind == Kind::feed; }
  friend auto operator<=>(const Source&, const Source&) = default;
};

/// The values of symbols in an iteration.
struct Bindings {
  std::vector<int64_t> values;  ///< by symbol; 0: not known yet
  /// What an expression has to be once the symbols in it are known.
  struct Claim {
    const graph::Dim* expression;
    int64_t value;
  };
  std::vector<Claim> claims;

  /// Whether all claims hold by what is known now.
  bool hold() const;
};

/// A type whose sizes may be symbols.
struct Pattern {
  static constexpr int32_t kConstant = -1, kDerived = -2, kFollows = -3;

  graph::Type type;  ///< with what was seen first; but for constants: any size of at least 2
  /// For each dimension: a symbol's number, or what else the size is.
  std::vector<int32_t> symbols;
  std::map<size_t, graph::Dim> expressions;  ///< of the dimensions that follow from symbols

  explicit Pattern(graph::Type seen = {})
      : type(std::move(seen)), symbols(type.shape.size(), kConstant) {}
  /// The type, with symbols as the graph names them. Derived sizes stay as they were seen.
  graph::Type symbolic() const;
  bool is_derived() const;
  /// Whether a value of the type fits. Symbols become known by it.
  bool fits(const graph::Type& seen, Bindings& bound) const;
  bool fits(const std::vector<int64_t>& sizes, Bindings& bound) const;

 private:
  bool fits_size(size_t index, int64_t size, Bindings& bound) const;
};

std::string symbol_name(int32_t symbol);
/// The type of a tensor with these sizes, for sizes that are no tensor's.
graph::Type sizes_as_type(const std::vector<int64_t>& sizes);

struct Input {
  std::vector<Source> sources;  ///< in the order in which traces showed them
  Pattern early;                ///< of a cell, feed or number among them
  SlotId slot = kNone;          ///< if a feed or number is among them

  bool has(Source::Kind kind) const;
};

struct Node {
  Key key;  ///< of a loop: that of its head
  LevelId level = 0;
  LevelId body = kNone;  ///< of a loop
  std::vector<Input> inputs;
  std::vector<Pattern> results;
  Pattern sizes = Pattern();     ///< its attributes that may vary, as the sizes of a tensor
  std::vector<bool> fetched;     ///< by result: Python looked at it in some trace
  std::vector<NodeId> children;  ///< in the order in which traces showed them; kEnd among them
  /// Of a loop: the number of trips if it was the same whenever it ran and is small; else 0.
  int64_t fixed_trips = 0;

  bool is_loop() const { return body != kNone; }
};

struct Level {
  NodeId loop = kNone;        ///< whose body it is
  std::vector<NodeId> first;  ///< the children of its entry
  std::vector<NodeId> nodes;  ///< in the order in which they were made
};

/// An input that is given from outside: a feed or a number.
struct Slot {
  NodeId node = kNone;
  uint32_t input = 0;
};

struct Nodes {
  std::vector<Node> nodes;
  std::vector<Level> levels = {Level{}};
  std::vector<Slot> slots;
  std::map<CellId, Pattern> cells;
  int32_t symbol_count = 0;

  const std::vector<NodeId>& children(LevelId level, NodeId from) const {
    return from == kEntry ? levels[level].first : nodes[from].children;
  }
  std::vector<NodeId>& children(LevelId level, NodeId from) {
    return from == kEntry ? levels[level].first : nodes[from].children;
  }
  const Pattern& pattern(const Source& source) const;  ///< of a result, slot or cell
};

}  // namespace janus::trace
