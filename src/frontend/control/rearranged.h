// Lists of the graph (frontend/control/rolled.h) in part, in a row, in another order, and where
// something is in them.
#pragma once

#include "frontend/values/rolled_list.h"

namespace janus::frontend {

/// list[start:stop], as numbers or None; null: a bound is something else.
std::shared_ptr<const Rolled> part_of(Interpreter& interpreter,
                                      const std::shared_ptr<const Rolled>& list, const Value& start,
                                      const Value& stop);
/// The elements of both, of which one at least is a list of the graph. Throws CannotMerge if they
/// have several forms.
std::shared_ptr<const Rolled> joined(Interpreter& interpreter, const ElementList& first,
                                     const ElementList& second);
/// The elements, with those from `start` to before `stop` replaced by others; null as of part_of().
std::shared_ptr<const Rolled> with_part(Interpreter& interpreter,
                                        const std::shared_ptr<const Rolled>& list,
                                        const Value& start, const Value& stop,
                                        const ElementList& part);
/// The position behind that one, for a slice; null: the key is no position, or one of which only
/// the run knows from which end it counts.
Value position_behind(Interpreter& interpreter, const Value& key);
/// Takes the element at a position out of a list that grew in the graph; null: the key is none.
Value take_element(Interpreter& interpreter, Sequence& list, const Value& key);
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

/// list.append(value) of a list made in the run.
void append(Interpreter& interpreter, Sequence& list, const Value& value);

}  // namespace janus::frontend
