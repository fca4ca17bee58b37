#include "frontend/core/heap_commit.h"

#include <algorithm>
#include <utility>

#include "frontend/core/heap.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

using speculate::HeapWrite;
using Kind = HeapWrite::Kind;

namespace {

/// How many of the list's first elements are those of the entry.
size_t unchanged_elements(const Heap::List& list) {
  size_t count = 0;
  while (count < list.at_entry.size() && count < list.shadow->elements.size() &&
         list.at_entry[count] == list.shadow->elements[count])
    ++count;
  return count;
}

/// How many elements of a deque have gone at the left, where the others are still there.
size_t dropped_elements(const Heap::List& list) {
  const std::vector<Value>&before = list.at_entry, &now = list.shadow->elements;
  for (size_t dropped = 0; dropped < before.size(); ++dropped) {
    const size_t kept = before.size() - dropped;
    if (kept <= now.size() &&
        std::equal(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(kept),
                   before.begin() + static_cast<std::ptrdiff_t>(dropped)))
      return dropped;
  }
  return before.size();
}

/// Elements behind the unchanged ones.
std::vector<Value> new_elements(const Heap::List& list) {
  if (list.shadow == nullptr) return list.appended->elements;
  const std::vector<Value>& elements = list.shadow->elements;
  if (!PyList_Check(list.object.get())) {
    const size_t kept = list.at_entry.size() - dropped_elements(list);
    return {elements.begin() + static_cast<std::ptrdiff_t>(kept), elements.end()};
  }
  return {elements.begin() + static_cast<std::ptrdiff_t>(unchanged_elements(list)), elements.end()};
}

HeapWrite write_of(const Heap::Table& table) {
  HeapWrite write;
  write.kind = table.target.kind;
  write.owner = table.target.owner;
  write.index = table.target.index;
  return write;
}

}  // namespace

std::vector<Value> values_written(Heap& heap) {
  std::vector<Value> values;
  for (PyObject* identity : heap.table_order())
    for (const Heap::Change& change : heap.table(identity)->changes)
      if (change.held.is_value()) values.push_back(change.held.value());
  for (PyObject* object : heap.list_order()) {
    const Heap::List& list = heap.list_at(object);
    if (!is_changed(list)) continue;
    if (list.shadow == nullptr && rolled(list.appended) != nullptr) {
      values.push_back(list.appended);
      continue;
    }
    for (const Value& element : new_elements(list)) values.push_back(element);
  }
  return values;
}

void commit_heap(Heap& heap, std::vector<HeapWrite>& writes,
                 const std::function<speculate::Template(const Value&)>& form) {
  for (PyObject* identity : heap.table_order()) {
    const Heap::Table& table = *heap.table(identity);
    if (table.cleared) {
      writes.push_back(write_of(table));
      writes.back().kind = Kind::clear;
    }
    for (const Heap::Change& change : table.changes) {
      HeapWrite write = write_of(table);
      write.key = change.key;
      write.deletes = change.held.is_absent();
      if (!write.deletes && write.kind != Kind::member) write.value = form(change.held.value());
      writes.push_back(std::move(write));
    }
  }
  for (PyObject* object : heap.list_order()) {
    const Heap::List& list = heap.list_at(object);
    if (!is_changed(list)) continue;
    HeapWrite write;
    write.kind = PyList_Check(object) ? Kind::tail : Kind::extend;
    write.owner = list.source;
    if (write.kind == Kind::tail)
      write.index = list.shadow == nullptr ? HeapWrite::kEnd : unchanged_elements(list);
    else
      write.index = list.shadow == nullptr ? 0 : dropped_elements(list);
    if (list.shadow == nullptr && rolled(list.appended) != nullptr) {
      write.value = form(list.appended);
      writes.push_back(std::move(write));
      continue;
    }
    write.value.kind = speculate::Template::Kind::list;
    for (const Value& element : new_elements(list)) write.value.children.push_back(form(element));
    writes.push_back(std::move(write));
  }
}

}  // namespace janus::frontend
