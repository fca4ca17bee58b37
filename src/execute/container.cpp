// See container.h.
#include "execute/container.h"

#include <algorithm>
#include <unordered_set>

namespace janus::execute {

void Container::retain(const Container* container) {
  if (container != nullptr && !is_number(container))
    container->owners_.fetch_add(1, std::memory_order_relaxed);
}

/// In a loop: lists may be longer, and frames in frames deeper, than the stack allows.
void Container::release(const Container* container) {
  if (is_number(container)) return;
  std::vector<const Container*> pending = {container};
  while (!pending.empty()) {
    const Container* next = pending.back();
    pending.pop_back();
    if (next == nullptr || is_number(next) ||
        next->owners_.fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    auto* last = const_cast<Container*>(next);
    pending.push_back(last->rest_);
    if (last->item_.kind() == Slot::Kind::container)
      pending.push_back(last->item_.take_container());
    for (Slot& item : last->items_)
      if (item.kind() == Slot::Kind::container) pending.push_back(item.take_container());
    delete last;
  }
}

Slot make_frame(std::vector<Slot> items) {
  if (items.empty()) return Slot::steal_container(nullptr);
  auto* frame = new Container;
  frame->items_ = std::move(items);
  return Slot::steal_container(frame);
}

std::span<const Slot> frame_items(const Slot& frame) {
  return frame.container() == nullptr ? std::span<const Slot>() : frame.container()->items_;
}

Slot push(const Slot& list, Slot item) {
  auto* longer = new Container;
  longer->item_ = std::move(item);
  longer->rest_ = list.container();
  longer->size_ = list_size(list) + 1;
  Container::retain(longer->rest_);
  return Slot::steal_container(longer);
}

int64_t list_size(const Slot& list) {
  return list.container() == nullptr ? 0 : list.container()->size_;
}

const Slot& last_item(const Slot& list) { return list.container()->item_; }

Slot without_last(const Slot& list) {
  Container::retain(list.container()->rest_);
  return Slot::steal_container(list.container()->rest_);
}

void replace_items(const Slot& container, const std::function<void(Slot&)>& replace) {
  std::unordered_set<const Container*> seen;
  std::vector<const Container*> pending = {container.container()};
  while (!pending.empty()) {
    auto* next = const_cast<Container*>(pending.back());
    pending.pop_back();
    if (next == nullptr || is_number(next) || !seen.insert(next).second) continue;
    const auto visit = [&](Slot& item) {
      replace(item);
      if (item.kind() == Slot::Kind::container) pending.push_back(item.container());
    };
    visit(next->item_);
    std::for_each(next->items_.begin(), next->items_.end(), visit);
    pending.push_back(next->rest_);
  }
}

}  // namespace janus::execute
