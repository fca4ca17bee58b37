// Checks a graph from scratch: the invariants that every pass may rely on and must preserve.
#include <map>
#include <set>
#include <vector>

#include "base/check.h"
#include "graph/builder.h"
#include "graph/functions.h"
#include "graph/text.h"

namespace janus::graph {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph), visible_(graph.value_count(), false), seen_(graph.value_count(), nullptr) {}

  void run() { check_block(graph_.body(), nullptr); }

 private:
  [[noreturn]] void fail(const Node* node, const std::string& message) const {
    throw InternalError(cat("verifier: graph @", graph_.name(), ": ", message,
                            node == nullptr ? "" : "\n" + print_around(graph_, *node)));
  }

  void define(const Node* at, const Value* value) {
    if (value == nullptr) fail(at, "a value is missing");
    if (value->id >= visible_.size()) fail(at, cat("value ", value->id, " is of another graph"));
    if (seen_[value->id] != nullptr) fail(at, cat("value ", value->id, " is defined twice"));
    seen_[value->id] = value;
    visible_[value->id] = true;
  }

  void check_use(const Node* at, const Value* value) const {
    if (value == nullptr) fail(at, "an operand is missing");
    if (value->id >= visible_.size() || !visible_[value->id] || seen_[value->id] != value)
      fail(at, cat("operand %", value->name, " (", value->type, ") is not visible here"));
  }

  void check_block(const Block& block, const Node* parent) {
    if (block.parent != parent) fail(parent, "a block does not know its node");
    std::vector<const Value*> local;
    for (size_t i = 0; i < block.parameters.size(); ++i) {
      const Value* value = block.parameters[i];
      define(parent, value);
      local.push_back(value);
      if (value->owner != &block || value->index != i || value->definition != nullptr)
        fail(parent, cat("parameter ", i, " does not know its block"));
    }
    for (const Node* node : block.nodes) {
      check_node(*node, block);
      local.insert(local.end(), node->outputs.begin(), node->outputs.end());
    }
    for (const Value* result : block.results) check_use(parent, result);
    for (const Value* value : local) visible_[value->id] = false;
  }

  void check_node(const Node& node, const Block& block) {
    if (node.op == nullptr) fail(&node, "a node has no operator");
    if (node.parent != &block) fail(&node, "a node does not know its block");
    for (const Value* input : node.inputs) check_use(&node, input);
    check_blocks(node);
    check_types(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      define(&node, node.outputs[i]);
      if (node.outputs[i]->definition != &node || node.outputs[i]->index != i ||
          node.outputs[i]->owner != nullptr)
        fail(&node, cat("result ", i, " does not know its node"));
    }
    check_state(node, block);
    check_function(node, block);
  }

  /// Functions stand in the body, with unique names, in front of the calls that run them.
  void check_function(const Node& node, const Block& block) {
    if (is_function(node)) {
      if (block.parent != nullptr) fail(&node, "a function stands inside a nested block");
      if (!functions_.emplace(function_name(node), &node).second)
        fail(&node, cat("function ", function_name(node), " is defined twice"));
    }
    if (is_call(node)) check_call(node);
    if (block.parent != nullptr) return;
    for (const Node* function : functions_run_by(node))
      if (!functions_.contains(function_name(*function)))
        fail(&node, cat("function ", function_name(*function), " is defined behind its call"));
  }

  void check_call(const Node& call) const {
    const Node* function = callee(call);
    if (function == nullptr) fail(&call, cat("there is no function ", function_name(call)));
    const Block& block = *function->blocks.front();
    check_same(call, "operand", call.inputs, block.parameters);
    check_same(call, "result", call.outputs, block.results);
  }

  void check_same(const Node& call, std::string_view what, std::span<Value* const> given,
                  std::span<Value* const> expected) const {
    if (given.size() != expected.size())
      fail(&call, cat(given.size(), " ", what, "s, the function has ", expected.size()));
    for (size_t i = 0; i < given.size(); ++i)
      if (expected[i] == nullptr || given[i]->type != expected[i]->type)
        fail(&call, cat(what, ' ', i, " is ", given[i]->type, ", the function's is ",
                        expected[i] == nullptr ? "missing" : to_string(expected[i]->type)));
  }

  /// Blocks of control operators see outer values; other blocks (`fused`) are closed.
  void check_blocks(const Node& node) {
    if (node.op->is(Trait::control)) {
      for (const auto& block : node.blocks) check_block(*block, &node);
      return;
    }
    const std::vector<bool> outer = visible_;
    visible_.assign(visible_.size(), false);
    for (const auto& block : node.blocks) check_block(*block, &node);
    visible_ = outer;
  }

  void check_types(const Node& node) const {
    try {
      if (node.op->infer == nullptr) {
        check_given(*node.op, node.inputs, node.attributes, node.blocks);
        return;
      }
      const std::vector<Type> types =
          infer_results(*node.op, node.inputs, node.attributes, node.blocks);
      if (types.size() != node.outputs.size())
        fail(&node, cat(node.op->name, " has ", node.outputs.size(), " results, should have ",
                        types.size()));
      for (size_t i = 0; i < types.size(); ++i)
        if (types[i] != node.outputs[i]->type)
          fail(&node, cat("result ", i, " of ", node.op->name, " is ", node.outputs[i]->type,
                          ", should be ", types[i]));
    } catch (const TypeError& error) {
      fail(&node, error.what());
    }
  }

  /// A cell is written once, in the body, and reads of it agree on its type.
  void check_state(const Node& node, const Block& block) {
    if (node.op->is(Trait::writes_state)) {
      if (block.parent != nullptr) fail(&node, "state is written inside a nested block");
      const std::string cell = node.attributes.get_or<std::string>("cell", "");
      if (!written_.emplace(node.op, cell).second)
        fail(&node, cat(node.op->name, " of cell ", cell, " stands twice"));
    }
    if (node.op->role == Role::state && node.outputs.size() == 1) {
      const std::string cell = node.attributes.get_or<std::string>("cell", "");
      const auto [known, is_new] = cell_types_.emplace(cell, node.outputs[0]->type);
      if (!is_new && known->second != node.outputs[0]->type)
        fail(&node, cat("cell ", cell, " is ", known->second, " elsewhere"));
    }
  }

  const Graph& graph_;
  std::vector<bool> visible_;       // by Value::id
  std::vector<const Value*> seen_;  // by Value::id: the value that was defined
  std::set<std::pair<const OpDef*, std::string>> written_;
  std::map<std::string, Type> cell_types_;
  std::map<std::string, const Node*> functions_;  // that stand in front
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace janus::graph
