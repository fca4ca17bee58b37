// Slots by the names of values.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/graph.h"

namespace janus::execute {

/// The slot of an input, or of what a node gives; UINT32_MAX if there is none of that name.
inline uint32_t slot_named(const graph::Graph& graph, std::string_view name) {
  uint32_t found = UINT32_MAX;
  for (const graph::Value* input : graph.inputs())
    if (input->name == name) found = input->id;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    for (const graph::Value* output : node.outputs)
      if (output->name == name) found = output->id;
  });
  return found;
}

}  // namespace janus::execute
