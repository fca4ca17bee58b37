#include "graph/traffic.h"

#include <set>

#include "graph/cost.h"

namespace janus::graph {

int64_t traffic(const Node& node) {
  int64_t bytes = 0;
  for (const Value* operand : std::set<const Value*>(node.inputs.begin(), node.inputs.end()))
    bytes += typical_bytes(operand->type);
  for (const Value* output : node.outputs) bytes += typical_bytes(output->type);
  return bytes;
}

int64_t traffic_apart(const Node& node) {
  int64_t bytes = 0;
  for (const auto& block : node.blocks)
    for_each_node(*block, [&](const Node& within) { bytes += traffic(within); });
  return bytes;
}

}  // namespace janus::graph
