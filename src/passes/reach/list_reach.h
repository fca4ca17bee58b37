// Must-reach through lists: what a gradient of some element of a list comes to, whichever it is.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "passes/reach/search.h"

namespace janus::passes {

/// Whether the value is one element of a list of tensors, or some of its elements: what else is in
/// the list has no gradient by it.
bool is_part_of_list(const graph::Value& value);

/// Whether a loop takes one element of a list of tensors after the other until there are no more.
bool is_taken_in_turn(const graph::Node& node);

/// The nodes that may have put an element into the list; nothing where not all of them are known.
std::optional<std::vector<graph::Node*>> pushes_to(const graph::Value& list);

/// What all elements that the list may have hand a gradient on to, of what can be seen where the
/// list is. Nothing where not all of them are known.
std::vector<graph::Value*> reached_by_each_element(const graph::Value& list, const Search& search,
                                                   const FunctionReach* functions);

}  // namespace janus::passes
