// When kernels are compiled: all of a graph at once, or one by one while the program goes on.
#pragma once

#include <memory>

#include "base/background.h"
#include "kernels/kernel.h"

namespace janus::kernels {

/// The kernel of a `fused` node, as compile() gives it. What of its code is not there when it runs
/// is compiled then.
std::shared_ptr<const Kernel> kernel_of(const graph::Node& fused);

/// compile_all() in the background. Null if all was compiled before, in this process or in one
/// whose code was kept.
std::shared_ptr<BackgroundWork> begin_compiling(const graph::Graph& graph);

}  // namespace janus::kernels
