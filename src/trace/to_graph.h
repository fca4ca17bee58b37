// Generates one graph of a TraceGraph.
//
// The graph has an input for everything that Python gives to an iteration:
//
// - the decisions, as one list of integers that is read from its beginning: which way the program
//   goes on where it has several, and whether a loop makes another trip (trace/cursor.h);
// - each feed and each number: as a value if it is certainly used once, else as a list of those
//   that are used, in the order of execution;
// - the value of each symbol that no certain feed and no cell shows.
//
// Branches become `if` nodes, nested where they have more than two ways, loops become `while`
// nodes, or are unrolled where the number of trips never varied. Values that Python looked at are
// results: a value if it is certainly computed once, else a list. Writes become one `commit` for
// each cell; a cell that this iteration does not write is given what it holds.
//
// What the caller has to see to: a cell has the type that the graph's `state` node has, also where
// the iteration does not use it. And all decisions are there when the graph begins. A program that
// looks at a value and decides by it has to be run in parts, or the executor has to wait for the
// next decision.
#pragma once

#include <variant>
#include <vector>

#include "graph/graph.h"
#include "trace/emit_operator.h"
#include "trace/trace_graph.h"

namespace janus::trace {

struct GraphInput {
  enum class Kind : uint8_t { decisions, feed, number, symbol };
  Kind kind = Kind::decisions;
  SlotId slot = kNone;   ///< feed and number
  bool is_list = false;  ///< feed and number: a list of what the slot gets in the iteration
  int32_t symbol = 0;
};

struct GraphResult {
  NodeId node = kNone;
  uint32_t result = 0;
  bool is_list = false;  ///< a list of what the node gave in the iteration, in its order
};

struct GeneratedGraph {
  graph::Graph graph;
  std::vector<GraphInput> inputs;    ///< in the order of the graph's
  std::vector<GraphResult> results;  ///< in the order of the graph's
};

/// The graph, or why there is none. `emitter` may be null.
std::variant<GeneratedGraph, Refusal> to_graph(const TraceGraph& traces,
                                               OperatorEmitter* emitter = nullptr);

}  // namespace janus::trace
