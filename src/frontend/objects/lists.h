// Positions, slices and changes of lists and tuples that the run makes, and of shadow copies of
// pre-existing lists.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The position that the key is; raises IndexError where there is none.
size_t checked_index(Interpreter& interpreter, const Sequence& sequence, const Value& key);

/// Which elements a slice takes.
struct SliceRange {
  Py_ssize_t start, step, count;
};

SliceRange slice_range(Interpreter& interpreter, const SliceValue& slice, size_t length);

/// elements[index] for an index that only the run knows; null if no number of the graph can be it.
Value element_at(Interpreter& interpreter, const std::vector<Value>& elements, const Value& index);

/// The list as it may be changed: one that the run made, or the shadow copy of a pre-existing one.
/// Null for anything else.
Sequence* changing_list(Interpreter& interpreter, const Value& value);

/// Notes that a pre-existing list is changed.
void note_list_change(Interpreter& interpreter, const Sequence& list);

}  // namespace janus::frontend
