// Sorting of symbolic lists, and the positions of their elements.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

/// What sorted(), max() and min() compare of an element; `key`: null and None say the element.
Value key_of(Interpreter& interpreter, const Value& key, const Value& element);

/// The list sorted by keys that are numbers of one kind; null: they are others.
std::shared_ptr<const Rolled> sorted_list(Interpreter& interpreter,
                                          const std::shared_ptr<const Rolled>& list,
                                          const Value& key, bool descends);

/// So many numbers sorted by keys of one kind, of which only the run knows some; nothing: they are
/// others.
std::optional<std::vector<Value>> sorted_numbers(Interpreter& interpreter,
                                                 const std::vector<Value>& elements,
                                                 const std::vector<Value>& keys, bool descends);

/// Where the value stands first in a list of numbers, -1: nowhere; null: they can't be compared so.
Value position_in(Interpreter& interpreter, const std::shared_ptr<const Rolled>& list,
                  const Value& value);

}  // namespace janus::frontend
