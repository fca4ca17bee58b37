// The TraceGraph: what a program was seen to do, as one graph of several iterations' traces.
//
// After Terra (Kim et al., "Terra: Imperative-Symbolic Co-Execution of Imperative Deep Learning
// Programs", NeurIPS 2021). Its merge is trace/merger.h, loops are found by trace/folding.h. Unlike
// Terra's, nodes also agree in where their operands come from: Terra ignores operands, and then a
// program that passes another value to the same operator gets a wrong result.
//
// What a Cursor follows to its end without a mismatch, the graph covers, and the graph that is
// generated of it (trace/to_graph.h) computes. Every trace that was merged is covered, as long as
// the graph keeps it: a trace that adds something is kept; of those that add nothing, the first
// ones are.
#pragma once

#include <set>

#include "base/policy.h"
#include "trace/cursor.h"
#include "trace/merger.h"

namespace janus::trace {

/// What a merge added.
struct Additions {
  std::string why;  ///< what the graph did not have; empty if it covered the trace
  size_t nodes = 0, edges = 0, sources = 0, fetches = 0;  ///< how many more there are

  bool any() const { return !why.empty(); }
};

class TraceGraph {
 public:
  struct Options {
    int64_t longest_unrolled =
        4;                     ///< trips of a loop that is unrolled if their number never varies
    size_t most_covered = 64;  ///< traces kept that added nothing
    bool folds = true;         ///< whether there are loops: locations tell calls apart
  };

  TraceGraph(const Names& names, Options options) : names_(&names), options_(options) {}
  explicit TraceGraph(const Names& names) : TraceGraph(names, Options{}) {}
  TraceGraph(const TraceGraph&) = delete;
  TraceGraph& operator=(const TraceGraph&) = delete;

  /// Makes the graph cover one more trace. Cursors of the graph are invalid if it adds something.
  Additions merge(const Trace& trace);
  /// Makes a new graph cover the traces.
  void merge_all(std::vector<Trace> traces);

  const Nodes& nodes() const { return nodes_; }
  const Names& names() const { return *names_; }
  /// A cursor at the beginning of an iteration.
  Cursor cursor() const { return Cursor(nodes_, *names_); }

  /// The nodes, one a line, as text for people and tests.
  std::string print() const;

 private:
  void rebuild();
  bool try_build(bool exact);
  void set_trips(const Merger& merger);
  std::set<Key> ambiguous_loops() const;
  bool follows(const Trace& trace, const std::vector<NodeId>& run);
  void keep_apart(const Key& key, const std::vector<NodeId>& followed,
                  const std::vector<NodeId>& merged, size_t event);
  std::string why_not_covered(const Trace& trace) const;

  const Names* names_;
  Options options_;
  std::vector<Trace> traces_;
  size_t covered_ = 0;
  Nodes nodes_;
  std::set<Key> unrolled_;  ///< heads of loops whose trips differ too much to be one body
  std::set<Key> exact_;     ///< what takes in no further sources
};

}  // namespace janus::trace
