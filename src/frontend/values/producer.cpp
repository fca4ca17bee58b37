#include "frontend/values/producer.h"

#include "graph/op.h"

namespace janus::frontend {

Producer::Producer(const graph::OpDef& op) : op(&op), name(op.name) {}

}  // namespace janus::frontend
