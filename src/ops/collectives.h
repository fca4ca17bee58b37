// The operators that communicate with other processes (communication.cpp). A graph has them in its
// body, each is run once, in program order, and none before all that may end the run.
#pragma once

#include "graph/op.h"

// clang-format off
#define TORCHJANUS_COLLECTIVES(X)                                                      \
  X(all_reduce_bucket) X(broadcast_buffers)                                            \
  X(all_reduce) X(broadcast) X(all_gather) X(reduce_scatter)                           \
  X(collective_wait)
// clang-format on

namespace janus::op {

#define X(name) extern const graph::OpDef name;
TORCHJANUS_COLLECTIVES(X)
#undef X

}  // namespace janus::op

namespace janus::ops {

/// Whether it is in the order of collectives that all processes must keep. To wait has no place in
/// that order: nothing is sent.
inline bool begins_collective(const graph::Node& node) {
  return node.op->is(graph::Trait::communicates) && node.op != &op::collective_wait;
}

}  // namespace janus::ops
