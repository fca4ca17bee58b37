// The operator `rows` (ops/structure.cpp): made by one pass, run by the executor, and nobody
// else's.
#pragma once

#include "graph/op.h"

namespace janus::op {
extern const graph::OpDef rows;
}
