// The effects by which nodes are ordered although no data flows between them.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

enum class Effect {
  random,         ///< draws from the generator: program order decides who gets which numbers
  heap,           ///< reads or writes Python's heap
  state,          ///< commit and rebind: the later one wins
  guard,          ///< the first that fails is the one that is reported
  communication,  ///< all processes make the same collectives in one order
};
constexpr size_t kEffectCount = 5;

/// Those of a node, of its blocks and of the functions that it runs; each once.
std::vector<Effect> ordering_effects(const graph::Node& node);

}  // namespace janus::passes
