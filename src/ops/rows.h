// The operator `rows` (ops/structure.cpp), for the one pass that makes it and for the executor
// only.
#pragma once

#include "graph/op.h"

namespace janus::op {
extern const graph::OpDef rows;
}
