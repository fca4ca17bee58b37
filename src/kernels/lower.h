// Operators to loop nests: runs the scalar programs of a block's nodes (OpDef::scalar) one after
// the other. Each node's result is converted to its dtype, as if it had been stored, so that a
// kernel rounds where eager does.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"
#include "kernels/loop_nest.h"

namespace janus::kernels {

/// What a node asks for that kernels do not have: a function, a dtype, a division that eager may
/// refuse. Not an error: the node is executed in another way.
struct Unsupported {
  std::string reason;
};

/// The loop nest of a `fused` node's block. Throws Unsupported.
LoopNest lower_block(const graph::Block& block);

/// Why `elementwise` could not be in a block; nullopt if it can.
std::optional<Unsupported> why_not(const graph::Node& elementwise);

}  // namespace janus::kernels
