// Persistent containers: what frames and lists of a graph are at run time.
//
// They are immutable. A list is a linked stack, its last element and the list without it, so that
// push and pop share structure and take no copy; a frame is an array. Any number of threads may
// hold one.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "execute/values/slot.h"

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
  friend void replace_items(const Slot& container, const std::function<void(Slot&)>& replace);
  static void visit(std::vector<const Container*> pending, const std::function<void(Slot&)>& see);
  friend void see_rows(std::span<const Slot> slots, const std::function<void(const Slot&)>& see);

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
/// The elements from the first to the last, and the list of them.
std::vector<Slot> list_items(Slot list);
Slot make_list(std::vector<Slot> items);

/// What an invocation that was put off will have given (execute/frame/rows.h), known by a number.
/// In a slot it is a container that there is not: where that would lie is an odd number.
inline bool is_number(const Container* container) {
  return (reinterpret_cast<uintptr_t>(container) & 1) != 0;
}
inline Slot make_row(int64_t number) {
  return Slot::steal_container(
      reinterpret_cast<const Container*>(static_cast<uintptr_t>(number) << 1 | 1));
}
inline bool is_row(const Slot& slot) {
  return slot.kind() == Slot::Kind::container && is_number(slot.container());
}
inline int64_t row_number(const Slot& row) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(row.container()) >> 1);
}

/// Lets `replace` put other slots for those in the container, and in all that are in it, which
/// stand for the same values.
void replace_items(const Slot& container, const std::function<void(Slot&)>& replace);

/// Shows the rows among the slots, and those in containers among them.
void see_rows(std::span<const Slot> slots, const std::function<void(const Slot&)>& see);

}  // namespace janus::execute
