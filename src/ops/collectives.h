// The operators that communicate with other processes (communication.cpp). A graph has them in its
// body, each is run once, in program order, and none before all that may end the run.
#pragma once

#include "graph/op.h"

// clang-format off
#define TORCHJANUS_COLLECTIVES(X) X(all_reduce_start) X(all_reduce_wait) X(broadcast_buffers)
// clang-format on

namespace janus {

namespace op {
#define X(name) extern const graph::OpDef name;
TORCHJANUS_COLLECTIVES(X)
#undef X
}  // namespace op

namespace ops {

bool communicates(const graph::Node& node);

}  // namespace ops

}  // namespace janus
