// Slices, joins and replaced parts of symbolic lists (symbolic_lists.h). A result is a new list;
// who changes a list in place puts the result in the place of its elements.
#pragma once

#include "frontend/values/symbolic_list.h"

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

/// list.append(value) of a list made in the run.
void append(Interpreter& interpreter, Sequence& list, const Value& value);

}  // namespace janus::frontend
