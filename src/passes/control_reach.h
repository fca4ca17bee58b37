// How gradients get through nodes with blocks.
#pragma once

#include <vector>

#include "passes/reachability.h"

namespace janus::passes {

/// The operands of an `if` or `while`, and the values that its blocks use from outside, that a
/// gradient of its result `output` flows on to.
std::vector<graph::Value*> reached_through(const graph::Value& output, Paths paths);

}  // namespace janus::passes
