// See container.h.
#include "execute/values/container.h"

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

std::vector<Slot> list_items(Slot list) {
  std::vector<Slot> items(static_cast<size_t>(list_size(list)));
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    *item = last_item(list);
    list = without_last(list);
  }
  return items;
}

Slot make_list(std::vector<Slot> items) {
  Slot list = empty_list();
  for (Slot& item : items) list = push(list, std::move(item));
  return list;
}

/// Lets `see` have the items of the containers, and of those in them.
void Container::visit(std::vector<const Container*> pending,
                      const std::function<void(Slot&)>& see) {
  std::unordered_set<const Container*> seen;
  while (!pending.empty()) {
    auto* next = const_cast<Container*>(pending.back());
    pending.pop_back();
    if (next == nullptr || is_number(next) || !seen.insert(next).second) continue;
    const auto see_item = [&](Slot& item) {
      see(item);
      if (item.kind() == Slot::Kind::container) pending.push_back(item.container());
    };
    see_item(next->item_);
    std::for_each(next->items_.begin(), next->items_.end(), see_item);
    pending.push_back(next->rest_);
  }
}

void replace_items(const Slot& container, const std::function<void(Slot&)>& replace) {
  Container::visit({container.container()}, replace);
}

void see_rows(std::span<const Slot> slots, const std::function<void(const Slot&)>& see) {
  std::vector<const Container*> containers;
  const auto see_row = [&](const Slot& slot) {
    if (is_row(slot)) see(slot);
  };
  for (const Slot& slot : slots) {
    see_row(slot);
    if (slot.kind() == Slot::Kind::container) containers.push_back(slot.container());
  }
  if (!containers.empty()) Container::visit(std::move(containers), see_row);
}

}  // namespace janus::execute
