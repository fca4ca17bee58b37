#include "trace/iteration.h"

#include <algorithm>

namespace janus::trace {

void Iteration::begin() {
  node_of_.clear();
  slot_of_feed_.clear();
  latest_.assign(nodes_->nodes.size(), 0);
  slots_.assign(nodes_->slots.size(), {});
}

std::optional<uint32_t> Iteration::latest(NodeId node) const {
  if (node >= latest_.size() || latest_[node] == 0) return std::nullopt;
  return latest_[node] - 1;
}

Iteration::Time Iteration::time(const Source& source) const {
  switch (source.kind) {
    case Source::Kind::result: {
      const auto event = latest(source.node);
      return event ? 2 * static_cast<Time>(*event) + 1 : kNever;
    }
    case Source::Kind::slot: {
      const SlotId id = slot(source);
      return id < slots_.size() ? slots_[id].time : kNever;
    }
    default:
      return kBeginning;
  }
}

bool Iteration::is_new_feed(const Event& event, uint32_t index) const {
  const Operand& operand = event.operands[index];
  if (operand.kind != Operand::Kind::feed || operand.index < slot_of_feed_.size()) return false;
  return std::none_of(event.operands.begin(), event.operands.begin() + index,
                      [&](const Operand& other) {
                        return other.kind == Operand::Kind::feed && other.index == operand.index;
                      });
}

std::optional<Iteration::Use> Iteration::use(const Event& event, uint32_t index,
                                             NodeId node) const {
  const Operand& operand = event.operands[index];
  switch (operand.kind) {
    case Operand::Kind::cell:
      return Use{{.kind = Source::Kind::cell, .cell = operand.cell}, kBeginning};
    case Operand::Kind::number:
      return Use{{.kind = Source::Kind::number}, kBeginning};
    case Operand::Kind::result: {
      const NodeId maker = node_of_[operand.index];
      if (latest(maker) != operand.index) return std::nullopt;
      const Source source{.kind = Source::Kind::result, .node = maker, .index = operand.result};
      return Use{source, time(source)};
    }
    case Operand::Kind::feed:
      break;
  }
  if (operand.index < slot_of_feed_.size()) {
    const SlotId id = slot_of_feed_[operand.index];
    if (slots_[id].feed != operand.index) return std::nullopt;
    const Slot& place = nodes_->slots[id];
    return Use{{.kind = Source::Kind::slot, .node = place.node, .index = place.input},
               slots_[id].time};
  }
  if (is_new_feed(event, index)) return Use{{.kind = Source::Kind::feed}, kBeginning};
  uint32_t first = 0;  // the operand of this very event that is the same feed
  while (event.operands[first].kind != Operand::Kind::feed ||
         event.operands[first].index != operand.index)
    ++first;
  return Use{{.kind = Source::Kind::slot, .node = node, .index = first},
             2 * static_cast<Time>(this->event())};
}

NodeId Iteration::overtaken(const Operand& operand) const {
  return operand.kind == Operand::Kind::result ? node_of_[operand.index]
                                               : nodes_->slots[slot_of_feed_[operand.index]].node;
}

bool Iteration::has(const Event& event, uint32_t index, NodeId node, const Use& use) const {
  const Input& input = nodes_->nodes[node].inputs[index];
  bool found = false;
  for (const Source& source : input.sources) {
    if (source == use.source) {
      found = true;
      continue;
    }
    // An operand in front of this one may be a feed that has just come.
    const bool is_new = source.kind == Source::Kind::slot && source.node == node &&
                        source.index < index && is_new_feed(event, source.index);
    if (is_new || time(source) >= use.time) return false;
  }
  // A feed that other sources follow is one for the whole iteration.
  const bool taken = use.source.kind == Source::Kind::feed && input.sources.size() > 1 &&
                     input.slot < slots_.size() && slots_[input.slot].time != kNever;
  return found && !taken;
}

void Iteration::execute(const Event& event, NodeId node) {
  const uint32_t now = this->event();
  latest_.resize(std::max(latest_.size(), nodes_->nodes.size()), 0);
  slots_.resize(std::max(slots_.size(), nodes_->slots.size()));
  for (uint32_t i = 0; i < event.operands.size(); ++i) {
    if (!is_new_feed(event, i)) continue;
    const SlotId id = nodes_->nodes[node].inputs[i].slot;
    slots_[id] = {.time = 2 * static_cast<Time>(now), .feed = event.operands[i].index};
    slot_of_feed_.push_back(id);
  }
  node_of_.push_back(node);
  latest_[node] = now + 1;
}

}  // namespace janus::trace
