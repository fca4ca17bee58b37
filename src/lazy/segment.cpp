#include "lazy/segment.h"

namespace janus::lazy {

uint32_t Segment::number_of(StorageNode& node, bool is_made) {
  if (node.numbered_in != numbering_) {
    node.numbered_in = numbering_;
    node.number = static_cast<uint32_t>(storages.size());
    storages.push_back({.node = &node, .is_made = is_made});
  }
  storages[node.number].last_use = event_;
  return node.number;
}

const c10::Storage& Segment::memory_of(size_t storage) const {
  const Storage& asked = storages[storage];
  if (!asked.memory) asked.memory = asked.node->memory(asked.is_written);
  return asked.memory;
}

void Segment::add(const Event& event) {
  words.push_back(reinterpret_cast<uintptr_t>(event.kind));
  for (size_t k = 0; k < event.operands.size(); ++k) {
    const uint32_t number = number_of(*event.operands[k].node, false);
    words.push_back(number);
    words.push_back(static_cast<uint64_t>(event.operands[k].offset));
    Storage& storage = storages[number];
    if (event.kind->writes(k) && !storage.is_made) storage.is_written = true;
  }
  for (const StorageNode::Pointer& node : event.results) number_of(*node, true);
  ++event_;
}

}  // namespace janus::lazy
