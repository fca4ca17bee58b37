#include "trace/trace_graph.h"

#include <algorithm>

#include "base/check.h"
#include "trace/sizes.h"

namespace janus::trace {
namespace {

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

/// Operands name what was there before, and new feeds are numbered one after the other.
void check(const Trace& trace) {
  uint32_t feeds = 0;
  for (size_t i = 0; i < trace.events.size(); ++i)
    for (const Operand& operand : trace.events[i].operands) {
      if (operand.kind == Operand::Kind::result)
        TORCHJANUS_CHECK(
            operand.index < i && operand.result < trace.events[operand.index].results.size(),
            "trace: an operand of event ", i, " is no result before it");
      if (operand.kind != Operand::Kind::feed) continue;
      TORCHJANUS_CHECK(operand.index <= feeds, "trace: feed ", operand.index, " comes before feed ",
                       feeds);
      feeds = std::max(feeds, operand.index + 1);
    }
}

std::vector<std::vector<Item>> without_loops(std::span<const Trace> traces) {
  std::vector<std::vector<Item>> items(traces.size());
  for (size_t i = 0; i < traces.size(); ++i)
    for (uint32_t event = 0; event < traces[i].events.size(); ++event)
      items[i].push_back({.event = event});
  return items;
}

}  // namespace

Additions TraceGraph::merge(const Trace& trace) {
  check(trace);
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

void TraceGraph::merge_all(std::vector<Trace> traces) {
  for (const Trace& trace : traces) check(trace);
  traces_ = std::move(traces);
  rebuild();
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
  // Where nodes take in no sources, what comes next is never ambiguous.
  TORCHJANUS_CHECK(try_build(/*exact=*/true), "trace: a graph does not cover what it was made of");
}

bool TraceGraph::try_build(bool exact) {
  std::set<Key> all;
  if (exact)
    for (const Trace& trace : traces_)
      for (const Event& event : trace.events) all.insert(key_of(event));
  const auto folded =
      options_.folds ? fold(traces_, exact ? all : unrolled_) : without_loops(traces_);
  nodes_ = Nodes();
  Merger merger(nodes_, traces_, exact ? all : exact_);
  try {
    for (size_t i = 0; i < traces_.size(); ++i) merger.merge(i, folded[i]);
  } catch (const UnrollLoop& loop) {
    unrolled_.insert(loop.head);
    return false;
  }
  if (std::set<Key> heads = ambiguous_loops(); !heads.empty()) {
    unrolled_.merge(heads);
    return false;
  }
  if (std::set<Key> keys = set_sizes(nodes_, traces_, merger.runs()); !keys.empty()) {
    exact_.merge(keys);
    return false;
  }
  set_trips(merger);
  for (size_t i = 0; i < traces_.size(); ++i)
    if (!follows(traces_[i], merger.runs()[i])) return false;
  return true;
}

/// Whether a cursor follows the trace; marks what Python looked at. A cursor may take an event for
/// another node than the merge did, as that has taken in a source since then, or as a loop goes on
/// there. If that leads to a mismatch, the next attempt has neither.
bool TraceGraph::follows(const Trace& trace, const std::vector<NodeId>& run) {
  Cursor follower = cursor();
  std::optional<size_t> astray;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const bool found = follower.follow(trace.events[i]);
    if (!astray && (!found || follower.node() != run[i])) astray = i;
    if (found) continue;
    keep_apart(key_of(trace.events[*astray]), follower.iteration().run(), run, *astray);
    return false;
  }
  if (!follower.finish()) {
    const size_t last = astray.value_or(run.size() - 1);
    keep_apart(key_of(trace.events[last]), follower.iteration().run(), run, last);
    return false;
  }
  for (const Fetch& fetch : trace.fetches)
    nodes_.nodes[follower.iteration().node_of(fetch.event)].fetched[fetch.result] = true;
  return true;
}

void TraceGraph::keep_apart(const Key& key, const std::vector<NodeId>& followed,
                            const std::vector<NodeId>& merged, size_t event) {
  if (exact_.insert(key).second) return;
  for (const std::vector<NodeId>* run : {&followed, &merged}) {
    if (event >= run->size()) continue;
    for (LevelId level = nodes_.nodes[(*run)[event]].level; level != 0;) {
      const Node& loop = nodes_.nodes[nodes_.levels[level].loop];
      unrolled_.insert(loop.key);
      level = loop.level;
    }
  }
}

void TraceGraph::set_trips(const Merger& merger) {
  for (const auto& [loop, trips] : merger.trips()) {
    const bool is_fixed = trips.size() == 1 && *trips.begin() <= options_.longest_unrolled;
    nodes_.nodes[loop].fixed_trips = is_fixed ? *trips.begin() : 0;
  }
}

/// The heads of loops in which some place has two ways to go on with the same call: their trips
/// differ in values, not in what they do.
std::set<Key> TraceGraph::ambiguous_loops() const {
  const auto repeats = [&](const std::vector<NodeId>& children) {
    std::set<Key> keys;
    return std::any_of(children.begin(), children.end(), [&](NodeId child) {
      return child != kEnd && !keys.insert(nodes_.nodes[child].key).second;
    });
  };
  std::set<Key> heads;
  for (const Level& level : nodes_.levels) {
    if (level.loop == kNone) continue;
    bool is_ambiguous = repeats(level.first);
    for (const NodeId id : level.nodes) is_ambiguous |= repeats(nodes_.nodes[id].children);
    if (is_ambiguous) heads.insert(nodes_.nodes[level.loop].key);
  }
  return heads;
}

}  // namespace janus::trace
