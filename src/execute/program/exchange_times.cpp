#include "execute/program/exchange_times.h"

#include <set>

#include "graph/graph.h"
#include "ops/collectives.h"

namespace janus::execute {

ExchangeTimes exchange_times(std::span<const TimedNode> run) {
  ExchangeTimes times;
  std::set<const graph::Node*> begun, ended;  // several steps may belong to one node
  for (const auto& [node, seconds] : run) {
    if (node->op == &op::collective_wait) {
      times.exposed += seconds;
      ended.insert(node);
    } else if (node->op == &op::broadcast_buffers) {  // it returns when all have them
      times.exposed += seconds;
      ended.insert(node);
      begun.insert(node);
    } else if (ops::begins_collective(*node)) {
      begun.insert(node);
    } else if (begun.size() > ended.size()) {
      times.overlapped += seconds;
    }
  }
  times.collectives = begun.size();
  return times;
}

}  // namespace janus::execute
