// A sequence of noted calls that run together, by its structure: which operators, of which
// operands, which results are wanted. Equal structures share one graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lazy/event.h"

namespace janus::lazy {

/// The storages of a segment are numbered in the order in which its calls meet them.
struct Segment {
  struct Storage {
    StorageNode* node = nullptr;
    bool is_made = false;     ///< by a call of the segment
    bool is_written = false;  ///< one that is not made
    bool is_wanted = false;   ///< made, and somebody may look at it afterwards
    size_t last_use = 0;      ///< the last of the events that make or use it
    mutable c10::Storage memory = {};
  };

  std::vector<const Event*> events;
  std::vector<Storage> storages;
  std::vector<uint64_t> words;  ///< equal for equal structures

  /// `is_used_later(node)`: whether a call that is not among `events` reads or writes it.
  template <class IsUsedLater>
  Segment(std::vector<const Event*> events, const IsUsedLater& is_used_later);

  /// The memory of a storage's contents, as StorageNode::memory(): the same each time.
  const c10::Storage& memory_of(size_t storage) const;

 private:
  uint32_t number_of(StorageNode& node, bool is_made);
  void add(const Event& event);
  uint64_t numbering_ = next_numbering();
  size_t event_ = 0;  ///< that is being added
};

template <class IsUsedLater>
Segment::Segment(std::vector<const Event*> all, const IsUsedLater& is_used_later)
    : events(std::move(all)) {
  for (const Event* event : events) add(*event);
  for (Storage& each : storages) {
    each.is_wanted = each.is_made && (each.node->is_alive() || is_used_later(*each.node));
    words.push_back(each.is_wanted ? 1 : 0);
  }
}

}  // namespace janus::lazy
