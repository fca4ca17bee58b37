// Functions of a graph: `function` nodes in its body, which `call` nodes run by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace janus::graph {

bool is_function(const Node& node);
bool is_call(const Node& node);

/// The body of a `function` or of a `while`.
inline Block& body_of(const Node& function) { return *function.blocks[0]; }
inline Block& loop_body(const Node& loop) { return *loop.blocks[1]; }

/// The name by which a `function` is called, or that a `call` calls.
const std::string& function_name(const Node& function_or_call);

/// The function of that name in `body`; null if there is none.
Node* find_function(const Block& body, std::string_view name);
/// The function that a call runs; null if the call is in no graph, or the graph does not have the
/// function (yet).
Node* callee(const Node& call);

/// The functions that may run when `node` runs: those called in it, transitively, each once. A
/// `function` node runs nothing itself.
std::vector<Node*> functions_run_by(const Node& node);
/// The same for all nodes of `block`.
std::vector<Node*> functions_run_by(const Block& block);

/// Calls `visit` for the node and for every node that runs with it, in its blocks and in functions.
template <class Visit>
void for_each_run(const Node& node, Visit&& visit) {
  if (is_function(node)) return;
  visit(node);
  for (const auto& block : node.blocks) for_each_node(*block, visit);
  for (const Node* function : functions_run_by(node)) for_each_node(body_of(*function), visit);
}

/// A name that no function of `body` has, made from `name`.
std::string unused_function_name(const Block& body, const std::string& name);

}  // namespace janus::graph
