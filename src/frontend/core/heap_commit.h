// The changes of the heap as what the commit does when the graph has run.
#pragma once

#include <functional>
#include <vector>

#include "frontend/core/heap.h"
#include "frontend/values/value.h"

namespace janus::frontend {

/// Values that the heap refers to after the run, in the order in which they are written.
std::vector<Value> values_written(Heap& heap);
/// Fills the writes; `form` gives a value's template.
void commit_heap(Heap& heap, std::vector<speculate::HeapWrite>& writes,
                 const std::function<speculate::Template(const Value&)>& form);

}  // namespace janus::frontend
