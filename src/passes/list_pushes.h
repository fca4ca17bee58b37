// Where the elements of a list come from.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::passes {

struct Pushes {
  std::vector<graph::Node*> nodes;  ///< `list_push`
  bool is_all = true;               ///< nothing else can be in it
};
/// What was pushed onto a list, and onto the lists that it was made of. `body`: where the calls of
/// functions stand; without it, what functions are given is not known.
Pushes pushes_of(graph::Value* list, const graph::Block* body = nullptr);

}  // namespace janus::passes
