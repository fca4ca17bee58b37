// See recursion.h.
#include "passes/batching/recursion.h"

#include <algorithm>

#include "graph/builder.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "ops/python.h"
#include "passes/batching/batching_rules.h"

namespace janus::passes {

using graph::Block;
using graph::body_of;
using graph::Builder;
using graph::Dim;
using graph::Graph;
using graph::loop_body;
using graph::Node;
using graph::Trait;
using graph::Value;

std::vector<bool> added_operands(const Node& node, UniformValues& uniform) {
  std::vector<bool> stacked = varying_operands(node, uniform);
  stacked[*added_to(node)] = false;
  return stacked;
}

namespace {

/// Tries in a graph of its own whether there is a form of the node for many rows.
template <class Append>
bool can_append(const Node& node, const std::vector<bool>& stacked, const Dim& rows,
                Append&& append) {
  Graph scratch("form");
  Builder builder(scratch);
  std::vector<Value*> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const graph::Type& type = node.inputs[i]->type;
    if (stacked[i] && !type.is_tensor() && !type.is_number()) return false;
    inputs.push_back(builder.input(stacked[i] ? rows_of(type, rows) : type, ""));
  }
  try {
    return append(builder, inputs).has_value();
  } catch (const graph::TypeError&) {
    return false;
  }
}

/// Whether it needs no tensors but such as are there without any invocation.
bool can_run_at_once(const Node& node, UniformValues& uniform) {
  if (!node.outputs.empty() && uniform.is_there(node.output())) return true;
  const auto is_there = [&](const Value* input) { return uniform.is_there(input); };
  return std::ranges::any_of(node.inputs, is_there) &&
         std::ranges::all_of(node.inputs, [&](const Value* input) {
           return !input->type.is_tensor() || uniform.contains(input) || is_there(input);
         });
}

bool has_rows_form(const Node& node, UniformValues& uniform, const Dim& rows) {
  const bool computes = node.op->is(Trait::pure) || node.op == &op::count_classes;
  if (!computes || node.op->is(Trait::random) || !node.blocks.empty()) return false;
  const std::vector<bool> stacked = varying_operands(node, uniform);
  const bool tensors =
      !node.outputs.empty() && std::ranges::all_of(node.outputs, [](const Value* output) {
        return output->type.is_tensor();
      });
  if (!tensors || std::ranges::find(stacked, true) == stacked.end()) return false;
  if (can_run_at_once(node, uniform)) return false;
  return can_append(node, stacked, rows, [&](Builder& builder, const auto& inputs) {
    return append_for_rows(builder, node, inputs, stacked, rows);
  });
}

bool can_add_rows(const Node& node, UniformValues& uniform, const Dim& rows) {
  const std::vector<bool> stacked = added_operands(node, uniform);
  return can_append(node, stacked, rows, [&](Builder& builder, const auto& inputs) {
    return append_sum_of_rows(builder, node, inputs, stacked);
  });
}

/// What is known of the layout of a row is known for all runs.
bool is_fixed(const Node& node, const std::set<std::string>& varying) {
  const auto varies = [&](const Value* value) {
    return std::ranges::any_of(value->type.shape, [&](const Dim& dim) {
      return std::ranges::any_of(dim.symbols(),
                                 [&](const std::string& name) { return varying.contains(name); });
    });
  };
  return std::ranges::none_of(node.inputs, varies) && std::ranges::none_of(node.outputs, varies);
}

bool hands_on(const Node& node) {
  return node.op == &op::call || node.op == &op::if_ || node.op == &op::while_ ||
         node.op == &op::frame_pack || node.op == &op::frame_unpack || node.op == &op::list_push ||
         node.op == &op::list_pop;
}

}  // namespace

Recursion::Recursion(std::vector<Node*> all, std::vector<Node*> once, const Block& body,
                     const Dim& symbol)
    : functions(std::move(all)),
      rows(symbol),
      uniform(body, functions, once),
      accumulators(functions, once,
                   [&](const Node& node) { return can_add_rows(node, uniform, rows); }),
      once_(std::move(once)) {
  const std::set<std::string> varying = graph::symbols_given_in(body);
  for (const Node* function : functions)
    graph::for_each_node(body_of(*function), [&](const Node& node) {
      if (is_divided(*node.parent) && is_fixed(node, varying) && !accumulators.adds(node) &&
          has_rows_form(node, uniform, rows))
        with_form_.insert(&node);
    });
}

bool Recursion::is_divided(const Block& block) {
  const Node* around = block.parent;
  if (around == nullptr || around->op == &op::function) return true;
  const bool nested =
      around->op == &op::if_ || (around->op == &op::while_ && &block == &loop_body(*around));
  return nested && is_divided(*around->parent);
}

bool Recursion::is_put_off(const Node& node) const {
  return with_form_.contains(&node) || accumulators.adds(node);
}

bool Recursion::can_put_off() {
  bool any = false, all = true;
  for (const Node* function : functions)
    graph::for_each_node(body_of(*function), [&](const Node& node) {
      any |= is_put_off(node);
      all = all && !ops::reads_clock(node) &&
            (runs_once(node) || is_put_off(node) || hands_on(node) || !looks_into_tensors(node));
    });
  return any && all;
}

bool Recursion::runs_once(const Node& node) const {
  return std::ranges::any_of(once_,
                             [&](const Node* each) { return node.parent == &body_of(*each); });
}

/// Lists may hold tensors; a tensor that was just read of the heap is there.
bool Recursion::looks_into_tensors(const Node& node) {
  return std::ranges::any_of(node.inputs, [&](const Value* input) {
    const bool holds = input->type.is_tensor() || input->type.kind == graph::Type::Kind::list ||
                       input->type.kind == graph::Type::Kind::frame;
    const bool is_read =
        input->definition != nullptr && input->definition->op->is(Trait::reads_heap);
    return holds && node.op != &op::list_size && !is_read && !uniform.contains(input) &&
           !uniform.is_there(input);
  });
}

}  // namespace janus::passes
