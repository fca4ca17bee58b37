// See function_reach.h.
#include "passes/reach/function_reach.h"

#include <utility>

#include "graph/functions.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

FunctionReach::FunctionReach(const std::vector<Node*>& functions) {
  for (const Node* function : functions)
    sources_[function].resize(function->blocks.front()->results.size());
}

bool FunctionReach::set(const Node& function, size_t index, BlockSources sources) {
  BlockSources& known = sources_.at(&function)[index];
  if (sources == known) return false;
  known = std::move(sources);
  return true;
}

bool FunctionReach::knows(const Node& call) const { return sources_.contains(graph::callee(call)); }

std::vector<Value*> FunctionReach::through(const Node& call, size_t index) const {
  const auto found = sources_.find(graph::callee(call));
  if (found == sources_.end()) return operands(call);
  const BlockSources& sources = found->second[index];
  std::vector<Value*> reached(sources.outer.begin(), sources.outer.end());
  for (const size_t parameter : sources.parameters) reached.push_back(call.inputs[parameter]);
  return reached;
}

}  // namespace janus::passes
