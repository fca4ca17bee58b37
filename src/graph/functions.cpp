// See functions.h.
#include "graph/functions.h"

#include <algorithm>

#include "base/check.h"
#include "graph/op.h"

namespace janus::graph {

namespace {

const Block* body_around(const Node& node) {
  const Block* block = node.parent;
  while (block != nullptr && block->parent != nullptr) block = block->parent->parent;
  return block;
}

/// Adds the functions that `block` runs, transitively.
void collect(const Block& block, std::vector<Node*>& found) {
  for_each_node(block, [&](const Node& node) {
    if (!is_call(node)) return;
    Node* function = callee(node);
    if (function == nullptr || std::ranges::find(found, function) != found.end()) return;
    found.push_back(function);
    collect(*function->blocks.front(), found);
  });
}

}  // namespace

bool is_function(const Node& node) { return node.op->role == Role::function; }
bool is_call(const Node& node) { return node.op->role == Role::call; }

const std::string& function_name(const Node& node) {
  const AttributeValue* value = node.attributes.find(is_call(node) ? "callee" : "name");
  const auto* name = value == nullptr ? nullptr : std::get_if<std::string>(value);
  TORCHJANUS_CHECK(name != nullptr, node.op->name, ": there is no name");
  return *name;
}

Node* find_function(const Block& body, std::string_view name) {
  for (Node* node : body.nodes)
    if (is_function(*node) && function_name(*node) == name) return node;
  return nullptr;
}

Node* callee(const Node& call) {
  const Block* body = body_around(call);
  return body == nullptr ? nullptr : find_function(*body, function_name(call));
}

std::vector<Node*> functions_run_by(const Node& node) {
  std::vector<Node*> found;
  if (is_function(node)) return found;
  if (is_call(node)) {
    Node* function = callee(node);
    if (function == nullptr) return found;
    found.push_back(function);
    collect(*function->blocks.front(), found);
  }
  for (const auto& block : node.blocks) collect(*block, found);
  return found;
}

std::vector<Node*> functions_run_by(const Block& block) {
  std::vector<Node*> found;
  collect(block, found);
  return found;
}

std::string unused_function_name(const Block& body, const std::string& name) {
  std::string candidate = name;
  for (int number = 1; find_function(body, candidate) != nullptr; ++number)
    candidate = cat(name, '.', number);
  return candidate;
}

}  // namespace janus::graph
