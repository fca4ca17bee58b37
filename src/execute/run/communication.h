// Where a run communicates with other processes it can't be given up any more.
#pragma once

#include <utility>

#include "execute/frame/frame.h"
#include "execute/library/library.h"
#include "graph/op.h"

namespace janus::execute {

/// Called before each operator.
inline void note_communication(const graph::Node& node, Frame& frame, Library& library) {
  if (!node.op->is(graph::Trait::communicates) || std::exchange(frame.is_certain, true)) return;
  library.enter_certain_part();
}

}  // namespace janus::execute
