#include "trace/cursor.h"

#include <algorithm>

#include "base/check.h"

namespace janus::trace {

Cursor::Cursor(const Nodes& nodes, const Names& names)
    : nodes_(&nodes), names_(&names), iteration_(nodes) {
  begin();
}

void Cursor::begin() {
  iteration_.begin();
  frames_.assign(1, Frame{});
  decisions_.clear();
  bound_.values.assign(static_cast<size_t>(nodes_->symbol_count), 0);
  bound_.claims.clear();
  mismatch_.clear();
}

bool Cursor::follow(const Event& event) {
  decisions_.clear();
  bound_before_ = bound_.values;
  if (!find(frames_.size() - 1, frames_.back(), &event)) {
    mismatch_ = explain(&event);
    return false;
  }
  iteration_.execute(event, frames_.back().at);
  return true;
}

bool Cursor::fetch(uint32_t event, uint32_t result) {
  const Node& node = nodes_->nodes[iteration_.node_of(event)];
  if (node.fetched[result]) return true;
  mismatch_ = cat("Python looks at result ", result, " of ",
                  names_->call(node.key.op, node.key.location), " for the first time");
  return false;
}

bool Cursor::finish() {
  decisions_.clear();
  if (!find(frames_.size() - 1, frames_.back(), nullptr)) {
    mismatch_ = explain(nullptr);
    return false;
  }
  if (!bound_.hold()) mismatch_ = "a size follows from others in another way";
  return mismatch_.empty();
}

// ---- The search -------------------------------------------------------------------------------

/// Goes on from a place to the event (null: the end of the iteration). The decisions on the way are
/// noted, and the frames from `depth` on stand there afterwards.
bool Cursor::find(size_t depth, Frame frame, const Event* event) {
  const std::vector<NodeId>& children = nodes_->children(frame.level, frame.at);
  const size_t before = decisions_.size();
  for (size_t i = 0; i < children.size(); ++i) {
    if (children.size() > 1)
      decisions_.push_back({Decision::Kind::select, frame.at, static_cast<int64_t>(i)});
    const bool found = children[i] == kEnd ? try_end(depth, frame, event)
                                           : try_child(depth, frame, children[i], event);
    if (found) return true;
    decisions_.resize(before);
  }
  return false;
}

bool Cursor::try_child(size_t depth, const Frame& frame, NodeId child, const Event* event) {
  const Node& node = nodes_->nodes[child];
  if (event == nullptr) return false;
  if (!node.is_loop()) {
    if (!matches(*event, child)) return false;
    stand(depth, {frame.level, child, frame.trips});
    return true;
  }
  if (!find(depth + 1, {node.body, kEntry, 1}, event)) return false;
  frames_[depth] = {frame.level, child, frame.trips};
  return true;
}

bool Cursor::try_end(size_t depth, const Frame& frame, const Event* event) {
  if (depth == 0) return event == nullptr;
  const NodeId loop = nodes_->levels[frame.level].loop;
  const int64_t fixed = nodes_->nodes[loop].fixed_trips;
  const size_t before = decisions_.size();
  if (event != nullptr && (fixed == 0 || frame.trips < fixed)) {
    if (fixed == 0) decisions_.push_back({Decision::Kind::again, loop, 1});
    if (find(depth, {frame.level, kEntry, frame.trips + 1}, event)) return true;
    decisions_.resize(before);
  }
  if (fixed != 0 && frame.trips != fixed) return false;
  if (fixed == 0) decisions_.push_back({Decision::Kind::leave, loop, 0});
  return find(depth - 1, {nodes_->nodes[loop].level, loop, frames_[depth - 1].trips}, event);
}

/// The frames up to `depth` stand for the place that was found. Those around it are set by those
/// who tried them.
void Cursor::stand(size_t depth, const Frame& frame) {
  frames_.resize(depth + 1);
  frames_[depth] = frame;
}

// ---- Matching ---------------------------------------------------------------------------------

bool Cursor::matches(const Event& event, NodeId id) {
  const Node& node = nodes_->nodes[id];
  if (node.key != key_of(event) || node.inputs.size() != event.operands.size() ||
      node.results.size() != event.results.size())
    return false;
  const size_t claims = bound_.claims.size();
  bool same = node.sizes.fits(event.sizes, bound_);
  for (uint32_t i = 0; same && i < event.operands.size(); ++i) same = operand_matches(event, id, i);
  for (uint32_t i = 0; same && i < event.results.size(); ++i) same = result_matches(event, id, i);
  if (!same) {
    bound_.values = bound_before_;
    bound_.claims.resize(claims);
  }
  return same;
}

bool Cursor::operand_matches(const Event& event, NodeId id, uint32_t index) {
  const Input& input = nodes_->nodes[id].inputs[index];
  const auto use = iteration_.use(event, index, id);
  if (!use || !iteration_.has(event, index, id, *use)) return false;
  const bool typed = use->source.is_early() || use->source.kind == Source::Kind::number;
  if (!typed) return true;
  const Pattern& pattern =
      use->source.kind == Source::Kind::cell ? nodes_->cells.at(use->source.cell) : input.early;
  return pattern.fits(event.operands[index].type, bound_);
}

bool Cursor::result_matches(const Event& event, NodeId id, uint32_t index) {
  return nodes_->nodes[id].results[index].fits(event.results[index], bound_);
}

// ---- Explanations -----------------------------------------------------------------------------

std::string Cursor::explain(const Event* event) {
  if (event == nullptr) return cat("the iteration ends", place());
  std::vector<NodeId> same;
  for (size_t depth = frames_.size(); depth-- > 0;)
    collect_keys(frames_[depth], key_of(*event), same);
  const std::string call = names_->call(event->op, event->location);
  if (same.empty()) return cat(call, " is new", place());
  return cat(call, place(), ": ", explain_difference(*event, same.front()));
}

std::string Cursor::explain_difference(const Event& event, NodeId id) {
  const Node& node = nodes_->nodes[id];
  if (node.inputs.size() != event.operands.size() || node.results.size() != event.results.size())
    return "another number of operands or results";
  for (uint32_t i = 0; i < event.operands.size(); ++i)
    if (!operand_matches(event, id, i)) {
      std::string expected;
      for (const Source& source : node.inputs[i].sources)
        expected += cat(expected.empty() ? "" : " or ", describe(source));
      if (!node.inputs[i].early.type.is_none())
        expected += cat(" of type ", node.inputs[i].early.symbolic());
      return cat("operand ", i, " is ", describe(event, i, id), ", was ", expected);
    }
  for (uint32_t i = 0; i < event.results.size(); ++i)
    if (!result_matches(event, id, i))
      return cat("result ", i, " is ", event.results[i], ", was ", node.results[i].symbolic());
  if (!node.sizes.fits(event.sizes, bound_)) return "its sizes differ";
  const NodeId loop = nodes_->levels[node.level].loop;
  if (loop != kNone && nodes_->nodes[loop].fixed_trips != 0)
    return cat("the loop had ", nodes_->nodes[loop].fixed_trips, " trips each time");
  return "it did not come here before";
}

std::string Cursor::describe(const Event& event, uint32_t index, NodeId node) const {
  const auto use = iteration_.use(event, index, node);
  if (!use) return "a value of an earlier trip";
  const graph::Type& type = event.operands[index].type;
  return cat(describe(use->source), type.is_none() ? "" : cat(" of type ", type));
}

std::string Cursor::describe(const Source& source) const {
  switch (source.kind) {
    case Source::Kind::cell:
      return cat("cell ", names_->cell(source.cell));
    case Source::Kind::feed:
      return "a new feed";
    case Source::Kind::number:
      return "a number";
    case Source::Kind::slot:
    case Source::Kind::result:
      break;
  }
  const Key& key = nodes_->nodes[source.node].key;
  return cat(source.kind == Source::Kind::slot ? "the feed in operand " : "result ", source.index,
             " of ", names_->call(key.op, key.location));
}

std::string Cursor::place() const {
  const Frame& frame = frames_.back();
  if (frame.at == kEntry) return " at the beginning";
  const Key& key = nodes_->nodes[frame.at].key;
  return cat(" after ", names_->call(key.op, key.location));
}

/// The nodes of a key that the graph has behind this place; those that come next are first.
void Cursor::collect_keys(const Frame& frame, const Key& key, std::vector<NodeId>& found) const {
  const auto collect = [&](const std::vector<NodeId>& nodes) {
    for (const NodeId id : nodes)
      if (id != kEnd && !nodes_->nodes[id].is_loop() && nodes_->nodes[id].key == key)
        found.push_back(id);
  };
  collect(nodes_->children(frame.level, frame.at));
  for (const NodeId id : nodes_->children(frame.level, frame.at))
    if (id != kEnd && nodes_->nodes[id].is_loop()) {
      const Level& body = nodes_->levels[nodes_->nodes[id].body];
      collect(body.first);
    }
  if (frame.level != 0) collect(nodes_->levels[frame.level].first);
  collect(nodes_->levels[frame.level].nodes);
}

}  // namespace janus::trace
