#include "trace/trace_graph.h"

#include <algorithm>

#include "base/check.h"
#include "trace/sizes.h"

namespace janus::trace {
namespace {

/// How often a trace that another one's sources led astray is merged again.
constexpr int kMostRounds = 4;

Additions count(const Nodes& nodes) {
  Additions result;
  result.nodes = nodes.nodes.size();
  for (const Level& level : nodes.levels) result.edges += level.first.size();
  for (const Node& node : nodes.nodes) {
    result.edges += node.children.size();
    for (const Input& input : node.inputs) result.sources += input.sources.size();
    result.fetches +=
        static_cast<size_t>(std::count(node.fetched.begin(), node.fetched.end(), true));
  }
  return result;
}

size_t grown(size_t before, size_t after) { return after > before ? after - before : 0; }

}  // namespace

Additions TraceGraph::merge(const Trace& trace) {
  const std::string why = why_not_covered(trace);
  if (why.empty()) {
    if (covered_ < options_.most_covered &&
        std::find(traces_.begin(), traces_.end(), trace) == traces_.end()) {
      traces_.push_back(trace);
      ++covered_;
    }
    return {};
  }
  traces_.push_back(trace);
  const Additions before = count(nodes_);
  rebuild();
  const Additions after = count(nodes_);
  return {.why = why,
          .nodes = grown(before.nodes, after.nodes),
          .edges = grown(before.edges, after.edges),
          .sources = grown(before.sources, after.sources),
          .fetches = grown(before.fetches, after.fetches)};
}

std::string TraceGraph::why_not_covered(const Trace& trace) const {
  Cursor follower = cursor();
  for (const Event& event : trace.events)
    if (!follower.follow(event)) return follower.mismatch();
  if (!follower.finish()) return follower.mismatch();
  for (const Fetch& fetch : trace.fetches)
    if (!follower.fetch(fetch.event, fetch.result)) return follower.mismatch();
  return {};
}

/// Builds the graph anew of all traces, as one more trace may show what is a loop, or that what was
/// one value is two. Each attempt knows more than the one before.
void TraceGraph::rebuild() {
  for (;;) {
    const size_t known = unrolled_.size() + exact_.size();
    if (try_build(/*exact=*/false)) return;
    if (unrolled_.size() + exact_.size() == known) break;
  }
  // Sources that were taken in lead some trace astray. Without any, a node has one value of each
  // operand, and what comes next is never ambiguous.
  TORCHJANUS_CHECK(try_build(/*exact=*/true), "trace: a graph does not cover what it was made of");
}

bool TraceGraph::try_build(bool exact) {
  std::set<Key> all;
  if (exact)
    for (const Trace& trace : traces_)
      for (const Event& event : trace.events) all.insert(key_of(event));
  const std::set<Key>& unrolled = exact ? all : unrolled_;
  const auto folded = fold(traces_, unrolled);
  nodes_ = Nodes();
  Merger merger(nodes_, traces_, exact ? all : exact_);
  std::set<size_t> pending;
  for (size_t i = 0; i < traces_.size(); ++i) pending.insert(i);
  for (int round = 0; round < kMostRounds && !pending.empty(); ++round) {
    try {
      for (const size_t i : pending) merger.merge(i, folded[i]);
    } catch (const UnrollLoop& loop) {
      unrolled_.insert(loop.head);
      return false;
    }
    if (const auto head = ambiguous_loop()) {
      unrolled_.insert(*head);
      return false;
    }
    std::vector<std::vector<NodeId>> runs;
    for (size_t i = 0; i < traces_.size(); ++i) runs.push_back(merger.run(i));
    if (const auto key = set_sizes(nodes_, traces_, runs)) {
      exact_.insert(*key);
      return false;
    }
    set_trips(merger);
    pending.clear();
    for (size_t i = 0; i < traces_.size(); ++i)
      if (!why_not_covered(traces_[i]).empty()) pending.insert(i);
  }
  return pending.empty();
}

void TraceGraph::set_trips(const Merger& merger) {
  for (const auto& [loop, trips] : merger.trips()) {
    const bool is_fixed = trips.size() == 1 && *trips.begin() <= options_.longest_unrolled;
    nodes_.nodes[loop].fixed_trips = is_fixed ? *trips.begin() : 0;
  }
}

/// The head of a loop in which some place has two ways to go on with the same call: its trips
/// differ in values, not in what they do.
std::optional<Key> TraceGraph::ambiguous_loop() const {
  for (const Level& level : nodes_.levels) {
    if (level.loop == kNone) continue;
    const auto repeats = [&](const std::vector<NodeId>& children) {
      std::set<Key> keys;
      return std::any_of(children.begin(), children.end(), [&](NodeId child) {
        return child != kEnd && !keys.insert(nodes_.nodes[child].key).second;
      });
    };
    const bool is_ambiguous =
        repeats(level.first) || std::any_of(level.nodes.begin(), level.nodes.end(), [&](NodeId id) {
          return repeats(nodes_.nodes[id].children);
        });
    if (is_ambiguous) return nodes_.nodes[level.loop].key;
  }
  return std::nullopt;
}

}  // namespace janus::trace
