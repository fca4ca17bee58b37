// Results of a branch, loop or function with gradients due outside, one of which lies on the way of
// another's gradient in there: whoever looks at the gradient that comes to the first, by a hook
// say, would not see what comes from the other, as a graph is only cut between its outermost nodes.
#pragma once

#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Refuses such results; a branch or loop is followed.
void check_not_within(Interpreter& interpreter, const std::vector<graph::Value*>& results);

}  // namespace janus::frontend
