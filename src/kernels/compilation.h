// Which nodes kernels can compute, and when kernels are compiled: one by one, all of a graph at
// once, or in the background while the program goes on.
#pragma once

#include <memory>

#include "base/background.h"
#include "graph/graph.h"
#include "kernels/kernel.h"

namespace janus::kernels {

/// Whether this node can be in a kernel (operator, dtypes, rank).
bool can_compile(const graph::Node& node);

/// Compiles the block of a `fused` node. Equal blocks share one kernel (process-wide cache).
/// Thread-safe.
std::shared_ptr<const Kernel> compile(const graph::Node& fused);

/// Compiles every `fused` node of the graph on all threads, so that compile() finds them.
void compile_all(const graph::Graph& graph);

/// The kernel of a `fused` node, as compile() gives it. What of its code is not there when it runs
/// is compiled then.
std::shared_ptr<const Kernel> kernel_of(const graph::Node& fused);

/// compile_all() in the background. Null if all was compiled before, in this process or in one
/// whose code was kept.
std::shared_ptr<BackgroundWork> begin_compiling(const graph::Graph& graph);

}  // namespace janus::kernels
