// Containers of values: what frames and lists of a graph are at run time.
//
// They are never changed. A list is its last element and the list without it, so that pushing and
// popping take no copy, whoever else holds the list; a frame is a list whose elements are side by
// side. Any number of threads may hold one.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "execute/slot.h"

namespace janus::execute {

class Container {
 public:
  static void retain(const Container* container);
  static void release(const Container* container);  ///< null is an empty container

 private:
  friend Slot make_frame(std::vector<Slot> items);
  friend Slot push(const Slot& list, Slot item);
  friend std::span<const Slot> frame_items(const Slot& frame);
  friend int64_t list_size(const Slot& list);
  friend const Slot& last_item(const Slot& list);
  friend Slot without_last(const Slot& list);

  mutable std::atomic<uint32_t> owners_ = 1;
  std::vector<Slot> items_;          ///< of a frame
  Slot item_;                        ///< of a list: the last
  const Container* rest_ = nullptr;  ///< of a list: the others, owned
  int64_t size_ = 0;                 ///< of a list
};

Slot make_frame(std::vector<Slot> items);
std::span<const Slot> frame_items(const Slot& frame);

inline Slot empty_list() { return Slot::steal_container(nullptr); }
Slot push(const Slot& list, Slot item);
int64_t list_size(const Slot& list);
/// Of a list that is not empty.
const Slot& last_item(const Slot& list);
Slot without_last(const Slot& list);

}  // namespace janus::execute
