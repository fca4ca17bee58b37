#include "trace/merger.h"

#include <algorithm>

#include "base/check.h"

namespace janus::trace {

void Merger::merge(size_t trace, std::span<const Item> items) {
  trace_ = trace;
  iteration_.begin();
  slot_types_.clear();
  merge_level(0, items);
  runs_[trace] = iteration_.run();
}

void Merger::merge_level(LevelId level, std::span<const Item> items) {
  const uint32_t begin = iteration_.event();
  NodeId at = kEntry;
  for (const Item& item : items) {
    level_begin_ = begin;  // a loop within has set it
    at = item.is_loop() ? merge_loop(level, at, item)
                        : merge_event(level, at, traces_[trace_].events[item.event]);
  }
  connect(level, at, kEnd);
}

// ---- Nodes and edges --------------------------------------------------------------------------

NodeId Merger::merge_loop(LevelId level, NodeId from, const Item& item) {
  const Key key = key_of(traces_[trace_].events[item.event]);
  NodeId loop = find_loop(level, from, key);
  if (loop == kNone) {
    loop = static_cast<NodeId>(nodes_.nodes.size());
    const auto body = static_cast<LevelId>(nodes_.levels.size());
    nodes_.nodes.push_back({.key = key, .level = level, .body = body});
    nodes_.levels.push_back({.loop = loop});
    nodes_.levels[level].nodes.push_back(loop);
    by_key_[{level, key}].push_back(loop);
  }
  connect(level, from, loop);
  for (const auto& trip : item.trips) merge_level(nodes_.nodes[loop].body, trip);
  trips_[loop].insert(static_cast<int64_t>(item.trips.size()));
  return loop;
}

NodeId Merger::find_loop(LevelId level, NodeId from, const Key& key) const {
  for (const NodeId node : children(level, from, key))
    if (nodes_.nodes[node].is_loop()) return node;
  for (const NodeId node : others(level, from, key))
    if (nodes_.nodes[node].is_loop() && !leads_to(node, from)) return node;
  return kNone;
}

NodeId Merger::merge_event(LevelId level, NodeId from, const Event& event) {
  for (uint32_t i = 0; i < event.operands.size(); ++i) {
    if (iteration_.use(event, i, kNone)) continue;
    const NodeId maker = iteration_.overtaken(event.operands[i]);
    const NodeId loop = nodes_.levels[nodes_.nodes[maker].level].loop;
    TORCHJANUS_CHECK(loop != kNone, "trace: a node outside of loops was executed twice");
    throw UnrollLoop{nodes_.nodes[loop].key};
  }
  NodeId node = find_event(level, from, event);
  if (node == kNone) node = new_event(level, event);
  connect(level, from, node);
  execute(event, node);
  return node;
}

NodeId Merger::find_event(LevelId level, NodeId from, const Event& event) {
  const std::vector<NodeId> next = children(level, from, key_of(event));
  for (const NodeId node : next)
    if (fits(event, node) && matches(event, node)) return node;
  for (const NodeId node : next)
    if (fits(event, node) && can_match(event, node)) return take(event, node);
  const std::vector<NodeId> joins = others(level, from, key_of(event));
  for (const NodeId node : joins)
    if (fits(event, node) && matches(event, node) && !leads_to(node, from)) return node;
  for (const NodeId node : joins)
    if (fits(event, node) && can_match(event, node) && !leads_to(node, from))
      return take(event, node);
  return kNone;
}

NodeId Merger::new_event(LevelId level, const Event& event) {
  const auto id = static_cast<NodeId>(nodes_.nodes.size());
  const Key key = key_of(event);
  Node& node = nodes_.nodes.emplace_back(Node{.key = key, .level = level});
  for (const graph::Type& type : event.results) node.results.emplace_back(type);
  node.sizes = Pattern(sizes_as_type(event.sizes));
  node.fetched.resize(event.results.size());
  node.inputs.resize(event.operands.size());
  for (uint32_t i = 0; i < event.operands.size(); ++i)
    add_source(id, i, iteration_.use(event, i, id)->source, event.operands[i]);
  nodes_.levels[level].nodes.push_back(id);
  by_key_[{level, key}].push_back(id);
  return id;
}

void Merger::connect(LevelId level, NodeId from, NodeId to) {
  std::vector<NodeId>& children = nodes_.children(level, from);
  if (std::find(children.begin(), children.end(), to) == children.end()) children.push_back(to);
}

std::vector<NodeId> Merger::children(LevelId level, NodeId from, const Key& key) const {
  std::vector<NodeId> result;
  for (const NodeId node : nodes_.children(level, from))
    if (node != kEnd && nodes_.nodes[node].key == key) result.push_back(node);
  return result;
}

std::vector<NodeId> Merger::others(LevelId level, NodeId from, const Key& key) const {
  const auto found = by_key_.find({level, key});
  if (found == by_key_.end()) return {};
  const std::vector<NodeId>& own = nodes_.children(level, from);
  std::vector<NodeId> result;
  for (const NodeId node : found->second) {
    // What was executed since the level began leads to this place.
    const bool is_behind =
        iteration_.latest(node).value_or(0) >= level_begin_ && iteration_.latest(node).has_value();
    if (!is_behind && std::find(own.begin(), own.end(), node) == own.end()) result.push_back(node);
  }
  return result;
}

bool Merger::leads_to(NodeId from, NodeId to) const {
  if (to == kEntry) return false;
  std::vector<NodeId> open = {from};
  std::vector<bool> seen(nodes_.nodes.size());
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    if (node == to) return true;
    for (const NodeId child : nodes_.nodes[node].children)
      if (child != kEnd && !seen[child]) {
        seen[child] = true;
        open.push_back(child);
      }
  }
  return false;
}

// ---- Events and nodes -------------------------------------------------------------------------

bool Merger::fits(const Event& event, NodeId id) const {
  const Node& node = nodes_.nodes[id];
  if (node.is_loop() || node.results.size() != event.results.size() ||
      node.inputs.size() != event.operands.size() ||
      !alike(node.sizes.type, sizes_as_type(event.sizes)))
    return false;
  for (size_t i = 0; i < node.results.size(); ++i)
    if (!alike(node.results[i].type, event.results[i])) return false;
  return fits_again(event, id);
}

/// In one iteration a node has the same sizes each time.
bool Merger::fits_again(const Event& event, NodeId id) const {
  const auto before = iteration_.latest(id);
  if (before && (traces_[trace_].events[*before].results != event.results ||
                 traces_[trace_].events[*before].sizes != event.sizes))
    return false;
  for (uint32_t i = 0; i < event.operands.size(); ++i) {
    const SlotId slot = nodes_.nodes[id].inputs[i].slot;
    const auto type = slot_types_.find(slot);
    if (type != slot_types_.end() && iteration_.is_new_feed(event, i) &&
        *type->second != event.operands[i].type)
      return false;
  }
  return true;
}

bool Merger::matches(const Event& event, NodeId id) const {
  for (uint32_t i = 0; i < event.operands.size(); ++i) {
    const Input& input = nodes_.nodes[id].inputs[i];
    const auto use = iteration_.use(event, i, id);
    if (!use || !iteration_.has(event, i, id, *use)) return false;
    const bool typed = use->source.is_early() || use->source.kind == Source::Kind::number;
    if (typed && !alike(input.early.type, event.operands[i].type)) return false;
  }
  return true;
}

bool Merger::can_match(const Event& event, NodeId id) const {
  if (exact_.contains(key_of(event))) return false;
  for (uint32_t i = 0; i < event.operands.size(); ++i) {
    const Input& input = nodes_.nodes[id].inputs[i];
    const auto use = iteration_.use(event, i, id);
    if (!use) return false;
    if (!iteration_.has(event, i, id, *use) && !can_take(event, id, i, *use)) return false;
    const bool typed = use->source.is_early() || use->source.kind == Source::Kind::number;
    const bool has =
        std::find(input.sources.begin(), input.sources.end(), use->source) != input.sources.end();
    if (typed && has && !alike(input.early.type, event.operands[i].type)) return false;
  }
  return true;
}

/// Whether the use is of a source that the input can have as one more.
bool Merger::can_take(const Event& event, NodeId id, uint32_t index, const Use& use) const {
  const Input& input = nodes_.nodes[id].inputs[index];
  if (use.source.kind == Source::Kind::number || input.has(Source::Kind::number)) return false;
  for (const Source& source : input.sources) {
    if (source == use.source || (source.is_early() && use.source.is_early())) return false;
    const bool is_new = source.kind == Source::Kind::slot && source.node == id &&
                        source.index < index && iteration_.is_new_feed(event, source.index);
    if (is_new || iteration_.time(source) >= use.time) return false;
    const graph::Type& type = source.is_early() ? input.early.type : type_of(source, {});
    if (!alike(type, type_of(use.source, event.operands[index]))) return false;
  }
  return keeps_past_uses(id, index, use.source);
}

bool Merger::keeps_past_uses(NodeId id, uint32_t index, const Source& source) const {
  const auto found = past_uses_.find({id, index});
  if (found == past_uses_.end()) return true;
  const bool has_feed = nodes_.nodes[id].inputs[index].has(Source::Kind::feed);
  std::map<size_t, std::set<uint32_t>> feeds;  // by trace
  for (const PastUse& past : found->second) {
    if (!source.is_early() && time_before(past.trace, source, past.event) >= past.time)
      return false;
    if (has_feed && past.time == Iteration::kBeginning) feeds[past.trace].insert(past.event);
  }
  return std::all_of(feeds.begin(), feeds.end(),
                     [](const auto& entry) { return entry.second.size() == 1; });
}

/// When the source had last got a value as the event was executed.
Iteration::Time Merger::time_before(size_t trace, const Source& source, uint32_t event) const {
  const auto found = times_[trace].find(source);
  if (found == times_[trace].end()) return Iteration::kNever;
  const auto& times = found->second;
  const auto after = std::upper_bound(times.begin(), times.end(), 2 * static_cast<Time>(event));
  return after == times.begin() ? Iteration::kNever : *std::prev(after);
}

const graph::Type& Merger::type_of(const Source& source, const Operand& operand) const {
  const bool is_early = source.is_early() || source.kind == Source::Kind::number;
  return is_early ? operand.type : nodes_.pattern(source).type;
}

NodeId Merger::take(const Event& event, NodeId id) {
  for (uint32_t i = 0; i < event.operands.size(); ++i) {
    const Use use = *iteration_.use(event, i, id);
    if (!iteration_.has(event, i, id, use)) add_source(id, i, use.source, event.operands[i]);
  }
  return id;
}

void Merger::add_source(NodeId id, uint32_t index, const Source& source, const Operand& operand) {
  Input& input = nodes_.nodes[id].inputs[index];
  input.sources.push_back(source);
  if (source.kind == Source::Kind::feed || source.kind == Source::Kind::number) {
    input.slot = static_cast<SlotId>(nodes_.slots.size());
    nodes_.slots.push_back({.node = id, .input = index});
  }
  if (source.kind == Source::Kind::cell)
    nodes_.cells.try_emplace(source.cell, Pattern(operand.type));
  if (source.is_early() || source.kind == Source::Kind::number) input.early = Pattern(operand.type);
}

void Merger::execute(const Event& event, NodeId id) {
  const uint32_t now = iteration_.event();
  auto& times = times_[trace_];
  for (uint32_t i = 0; i < event.operands.size(); ++i) {
    const Use use = *iteration_.use(event, i, id);
    past_uses_[{id, i}].push_back({.trace = trace_, .event = now, .time = use.time});
    if (use.source.kind != Source::Kind::feed) continue;
    slot_types_[nodes_.nodes[id].inputs[i].slot] = &event.operands[i].type;
    times[{.kind = Source::Kind::slot, .node = id, .index = i}].push_back(2 *
                                                                          static_cast<Time>(now));
  }
  for (uint32_t r = 0; r < event.results.size(); ++r)
    times[{.kind = Source::Kind::result, .node = id, .index = r}].push_back(
        2 * static_cast<Time>(now) + 1);
  iteration_.execute(event, id);
}

}  // namespace janus::trace
