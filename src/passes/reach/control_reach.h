// How gradients get through nodes with blocks, and through calls.
//
// For functions that call each other it is a fixpoint. What is reached at all is the least one.
// What is reached for certain is the greatest: every run comes to an end, so if all ways through a
// function lead there, given that the calls in it do, they do.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/reach/search.h"

namespace janus::passes {

/// The operands of an `if`, `while` or call, and the values that its blocks, and the functions that
/// it runs, use from outside, that a gradient of its result `output` flows on to. `functions`: null
/// if nothing is known of them yet.
std::vector<graph::Value*> reached_through(const graph::Value& output, Paths paths,
                                           const Search& search, const FunctionReach* functions);

}  // namespace janus::passes
