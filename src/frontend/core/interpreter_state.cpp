#include "frontend/core/interpreter_state.h"

#include <algorithm>

namespace janus::frontend {

ElementList SavedState::elements_of(PyObject* list, const Heap::List& opened) const {
  ElementList elements = opened.at_entry;
  if (!state.heap.has_list(list)) return elements;
  const ChangeableState* appended = objects.find(state.heap.list_at(list).appended.get());
  for (const Value& element : std::get<Elements>(*appended).known()) elements.push_back(element);
  return elements;
}

bool only_read(const SavedState& before, const InterpreterState& now) {
  // Of no account: what is overwritten shows in a tensor, and classes and casts are found by reads.
  const auto& [modes, heap, history, known_classes, casts, effects] = now;
  return modes == before.state.modes && heap.change_count() == before.state.heap.change_count() &&
         effects.size() == before.state.effects.size() &&
         std::ranges::all_of(before.objects.objects(), &Snapshot::Saved::was_only_read);
}

}  // namespace janus::frontend
