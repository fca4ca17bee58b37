// What the two sides of a branch leave of the heap, as one.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutation.h"
#include "frontend/core/heap.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/keys.h"

namespace janus::frontend {

using Kind = speculate::HeapWrite::Kind;

namespace {

/// What a mutation check takes the place for.
State state_of(const Heap::Target& target) {
  switch (target.kind) {
    case Kind::attribute:
      return target.object.is(target.table) ? State::slot : State::attribute;
    case Kind::item:
      return State::item;
    case Kind::member:
      return State::set;
    default:
      return State::variable;
  }
}

}  // namespace

class HeapMerger {
 public:
  using MergeValues = std::function<Value(const Value&, const Value&)>;
  HeapMerger(Interpreter& interpreter, const Heap& before, const Heap& first, const Heap& second,
             const MergeValues& merge_values)
      : interpreter_(interpreter),
        before_(before),
        first_(first),
        second_(second),
        merge_values_(merge_values) {}

  std::string run(Heap& merged) {
    for (const Heap* heap : {&first_, &second_}) {
      for (PyObject* identity : heap->table_order_)
        if (!merged.tables_.contains(identity)) merge_table(merged, identity);
      for (PyObject* object : heap->list_order_)
        if (!merged.lists_.contains(object)) merge_list(merged, object);
    }
    merged.change_count_ = std::max(first_.change_count_, second_.change_count_);
    return why_not_;
  }

 private:
  template <class Map>
  static auto* find(const Map& map, PyObject* object) {
    auto found = map.find(object);
    return found == map.end() ? nullptr : &found->second;
  }

  void fail(std::string why) {
    if (why_not_.empty()) why_not_ = std::move(why);
  }

  void merge_table(Heap& merged, PyObject* identity) {
    const Heap::Table* a = find(first_.tables_, identity);
    const Heap::Table* b = find(second_.tables_, identity);
    const Heap::Table* before = find(before_.tables_, identity);
    merged.table_order_.push_back(identity);
    Heap::Table& table = merged.tables_[identity] = a != nullptr ? *a : *b;
    // What only one side opened is opened again when it is needed.
    table.shadow = before != nullptr ? before->shadow : nullptr;
    table.changes.clear();
    static const Heap::Table untouched;
    const Heap::Table &left = a != nullptr ? *a : untouched, &right = b != nullptr ? *b : untouched;
    table.paths.insert(right.paths.begin(), right.paths.end());
    if (left.cleared != right.cleared) return fail("one side clears a container");
    if (same_keys(left.changes, right.changes)) {
      for (size_t i = 0; i < left.changes.size(); ++i)
        add_change(table, left.changes[i], left.changes[i].held, right.changes[i].held);
      return;
    }
    if (left.cleared) return fail("the sides write different keys");
    if (!same_order_of_new_keys(table, left.changes, right.changes) &&
        !is_planted(State::key_order, Mutation::both_sides))
      return fail("the sides make attributes or items in another order");
    for (const Heap::Change& change : left.changes)
      add_change(table, change, change.held, held_in(table, right.changes, change));
    for (const Heap::Change& change : right.changes)
      if (last(left.changes, change.key.get()) == nullptr)
        add_change(table, change, held_in(table, left.changes, change), change.held);
  }

  /// Whether keys that both sides write, and that may be new ones, come in one order: those that a
  /// side deletes and sets again as well. (A key that only one side writes is an old one, or the
  /// sides can't be merged.)
  bool same_order_of_new_keys(const Heap::Table& table, const std::vector<Heap::Change>& a,
                              const std::vector<Heap::Change>& b) {
    std::vector<Heap::Change> of_first, of_second;
    for (const Heap::Change& change : a)
      if (last(b, change.key.get()) != nullptr) of_first.push_back(change);
    for (const Heap::Change& change : b)
      if (last(a, change.key.get()) != nullptr) of_second.push_back(change);
    if (same_keys(of_first, of_second)) return true;
    const auto moves = [&](const std::vector<Heap::Change>& changes, PyObject* key) {
      return std::ranges::any_of(changes, [&](const Heap::Change& change) {
        return change.held.is_absent() && same_key(interpreter_, change.key.get(), key);
      });
    };
    const auto is_old = [&](const Heap::Change& change) {
      return !moves(a, change.key.get()) && !moves(b, change.key.get()) &&
             interpreter_.held_at_entry(table, change).is_value();
    };
    std::erase_if(of_first, is_old);
    std::erase_if(of_second, is_old);
    return same_keys(of_first, of_second);
  }

  bool same_keys(const std::vector<Heap::Change>& a, const std::vector<Heap::Change>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
      return same_key(interpreter_, x.key.get(), y.key.get()) &&
             x.held.is_absent() == y.held.is_absent();
    });
  }

  const Heap::Change* last(const std::vector<Heap::Change>& changes, PyObject* key) {
    for (size_t i = changes.size(); i-- > 0;)
      if (same_key(interpreter_, changes[i].key.get(), key)) return &changes[i];
    return nullptr;
  }

  void add_change(Heap::Table& table, const Heap::Change& change, const Held& a, const Held& b) {
    if (!why_not_.empty()) return;
    Held merged = a;
    if (a.is_value() && b.is_value())
      merged = merge_values_(a.value(), b.value());
    else if (!a.is_absent() || !b.is_absent())
      return fail("only one side deletes or makes an attribute or item");
    table.changes.push_back({change.key, merged, change.at_entry});
  }

  /// What a side leaves in a place that the other one writes: what was there at the entry.
  Held held_in(const Heap::Table& table, const std::vector<Heap::Change>& changes,
               const Heap::Change& wanted) {
    if (const Heap::Change* change = last(changes, wanted.key.get())) return change->held;
    const bool is_known = !wanted.held.is_value() || as<Known>(wanted.held.value()) != nullptr;
    if (is_known && is_planted(state_of(table.target), Mutation::both_sides)) return wanted.held;
    const Held held = interpreter_.held_at_entry(table, wanted);
    // Nothing is assumed of what is not there, but of sets.
    return held.is_absent() && table.target.kind != Kind::member ? Held() : held;
  }

  /// What the list has behind its elements of the entry; null if these were changed.
  static std::shared_ptr<Sequence> grown(const Heap::List* list) {
    if (list == nullptr) return std::make_shared<Sequence>(true);
    if (list->shadow == nullptr) return list->appended;
    if (list->shadow->elements == list->at_entry) return std::make_shared<Sequence>(true);
    const std::vector<Value>& now = list->shadow->elements;
    bool kept = now.size() >= list->at_entry.size() &&
                std::equal(list->at_entry.begin(), list->at_entry.end(), now.begin());
    if (!kept) return nullptr;
    auto behind = std::make_shared<Sequence>(true);
    behind->elements = std::vector<Value>(
        now.begin() + static_cast<std::ptrdiff_t>(list->at_entry.size()), now.end());
    return behind;
  }

  void merge_list(Heap& merged, PyObject* object) {
    const Heap::List* a = find(first_.lists_, object);
    const Heap::List* b = find(second_.lists_, object);
    const Heap::List* before = find(before_.lists_, object);
    merged.list_order_.push_back(object);
    Heap::List& list = merged.lists_[object] = a != nullptr ? *a : *b;
    if (b != nullptr) list.paths.insert(b->paths.begin(), b->paths.end());
    if (before != nullptr && before->shadow != nullptr) return;  // merged as any other list
    auto first = grown(a), second = grown(b);
    if (is_planted(State::list, Mutation::both_sides))
      (b == nullptr ? second : first) = b == nullptr ? first : second;
    if (!first || !second) return fail("the sides leave a list with different elements");
    list.shadow = nullptr;
    list.appended = std::static_pointer_cast<Sequence>(merge_values_(first, second));
  }

  Interpreter& interpreter_;
  const Heap &before_, &first_, &second_;
  const MergeValues& merge_values_;
  std::string why_not_;
};

std::string Heap::merge(Interpreter& interpreter, const Heap& before, const Heap& first,
                        const Heap& second, const HeapMerger::MergeValues& merge_values) {
  Heap merged;
  std::string why_not = HeapMerger(interpreter, before, first, second, merge_values).run(merged);
  if (why_not.empty()) *this = std::move(merged);
  return why_not;
}

}  // namespace janus::frontend
