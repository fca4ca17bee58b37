// Layouts of what a kernel computes: every result of a `fused` node lies as the operators in it
// would lay it one by one in eager, so that nobody sees from strides that they were fused.
#pragma once

#include <vector>

#include "execute/values/layout.h"
#include "graph/graph.h"

namespace janus::execute {

/// Layouts of a fused node's results, as eager's, where its inputs have these layouts (null for
/// numbers).
std::vector<Layout> fused_layouts(const graph::Node& fused,
                                  const std::vector<const Layout*>& inputs);

}  // namespace janus::execute
