// See leave_undefined.h.
#include "passes/cleanup/leave_undefined.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/constant.h"
#include "graph/rewriter.h"
#include "ops/list.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Graph;
using graph::Node;
using graph::Value;

// ---- results that tell which side was taken

std::optional<bool> constant_flag(const Value* value) {
  const graph::AttributeValue* constant = graph::constant_value(value);
  const bool* flag = constant == nullptr ? nullptr : std::get_if<bool>(constant);
  return flag == nullptr ? std::nullopt : std::optional(*flag);
}

Graph with_plain_flags(const Graph& graph) {
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    if (node.op != &op::if_) return false;
    const Node* copy = rewriter.copy(node);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const auto first = constant_flag(node.blocks[0]->results[i]);
      const auto second = constant_flag(node.blocks[1]->results[i]);
      if (!first || !second || *first == *second) continue;
      Value* condition = copy->inputs[0];
      if (condition->type.kind != graph::Type::Kind::boolean) continue;
      rewriter.set(node.outputs[i],
                   *first ? condition : op::scalar_not(rewriter.builder(), {condition}));
    }
    return true;
  });
  return rewriter.finish();
}

// ---- where values are read

/// A condition is `base`, or its opposite.
struct Test {
  const Value* base = nullptr;
  bool is_opposite = false;
};

Test test_of(const Value* condition) {
  Test test{condition};
  while (test.base->definition != nullptr && test.base->definition->op == &op::scalar_not) {
    test.base = test.base->definition->inputs[0];
    test.is_opposite = !test.is_opposite;
  }
  return test;
}

struct Use {
  Node* node = nullptr;  ///< null: a result of the block
  const Block* block = nullptr;
  size_t operand = 0;
};

class Sides {
 public:
  explicit Sides(Graph& graph) : graph_(graph) { note_uses(graph.body()); }

  void run() {
    graph::for_each_node(graph_.body(), [&](Node& node) {
      if (node.op == &op::if_) branches_.push_back(&node);
    });
    for (Node* branch : branches_) hand_on_frames(*branch);
    for (Node* branch : branches_)
      for (size_t i = 0; i < branch->outputs.size(); ++i) leave_undefined(*branch, i);
  }

 private:
  void note_uses(const Block& block) {
    for (Node* node : block.nodes) {
      for (size_t i = 0; i < node->inputs.size(); ++i)
        uses_[node->inputs[i]].push_back({node, &block, i});
      for (const auto& nested : node->blocks) note_uses(*nested);
    }
    for (const Value* result : block.results) uses_[result].push_back({nullptr, &block, 0});
  }

  /// The side of `branch` that surely was taken where the value is used; none: it may be either.
  static std::optional<size_t> side_of(const Use& use, const Node& branch) {
    const Test test = test_of(branch.inputs[0]);
    const auto side_where = [&](const Test& other, bool holds) -> size_t {
      return (other.is_opposite == test.is_opposite) == holds ? 0 : 1;
    };
    if (use.node != nullptr && use.node->op == &op::rebind && use.operand == 0 &&
        use.node->inputs.size() > 1) {
      const Test flag = test_of(use.node->inputs[1]);
      if (flag.base == test.base) return side_where(flag, true);
    }
    for (const Block* block = use.block; block->parent != nullptr; block = block->parent->parent) {
      const Node& around = *block->parent;
      if (around.op != &op::if_) continue;
      const Test other = test_of(around.inputs[0]);
      if (other.base == test.base) return side_where(other, block == around.blocks[0].get());
    }
    return std::nullopt;
  }

  /// The only side of `branch` whose result `index` is read.
  std::optional<size_t> only_side(const Node& branch, size_t index) const {
    const auto uses = uses_.find(branch.outputs[index]);
    if (uses == uses_.end()) return std::nullopt;
    const std::optional<size_t> side = side_of(uses->second.front(), branch);
    const auto is_there = [&](const Use& use) { return side_of(use, branch) == side; };
    return std::ranges::all_of(uses->second, is_there) ? side : std::nullopt;
  }

  Value* undefined_in(Block& side, const graph::Type& type) {
    return graph::Builder(graph_, side).append_unchecked(op::undefined, {}, {}, {type})->output();
  }

  void leave_undefined(Node& branch, size_t index) {
    const graph::Type& type = branch.outputs[index]->type;
    if (!type.is_tensor()) return;
    const std::optional<size_t> read = only_side(branch, index);
    if (!read) return;
    Block& other = *branch.blocks[1 - *read];
    const Node* given = other.results[index]->definition;
    if (given == nullptr || given->op != &op::undefined)
      other.results[index] = undefined_in(other, type);
  }

  void hand_on_frames(Node& branch) {
    for (size_t i = 0; i < branch.outputs.size(); ++i) {
      if (branch.outputs[i]->type.kind != graph::Type::Kind::frame) continue;
      const std::optional<size_t> side = only_side(branch, i);
      if (side) hand_on_frame(branch, i, *side);
    }
  }

  void hand_on_frame(Node& branch, size_t index, size_t side) {
    const Node* packed = branch.blocks[side]->results[index]->definition;
    if (packed == nullptr || packed->op != &op::frame_pack) return;
    const std::vector<Use> unpacked = uses_.at(branch.outputs[index]);
    const auto fits = [&](const Use& use) {
      return use.node != nullptr && use.node->op == &op::frame_unpack &&
             std::ranges::equal(use.node->outputs, packed->inputs,
                                [](const Value* a, const Value* b) { return a->type == b->type; });
    };
    const auto can_be_handed_on = [&](const Value* value) {
      return value->type.is_tensor() || !is_own(value, *branch.blocks[side]);
    };
    if (packed->parent != branch.blocks[side].get() || !std::ranges::all_of(unpacked, fits) ||
        !std::ranges::all_of(packed->inputs, can_be_handed_on))
      return;
    for (size_t i = 0; i < packed->inputs.size(); ++i) {
      Value* whole = handed_on(branch, side, packed->inputs[i]);
      for (const Use& use : unpacked) replace(use.node->outputs[i], whole);
    }
  }

  static bool is_own(const Value* value, const Block& block) {
    return (value->definition != nullptr ? value->definition->parent : value->owner) == &block;
  }

  /// A value of a side as a result of the branch, or as it is where it comes from outside.
  Value* handed_on(Node& branch, size_t side, Value* value) {
    if (!is_own(value, *branch.blocks[side])) return value;
    for (size_t i = 0; i < branch.outputs.size(); ++i)
      if (branch.blocks[side]->results[i] == value && branch.outputs[i]->type == value->type)
        return branch.outputs[i];
    branch.blocks[side]->results.push_back(value);
    Block& other = *branch.blocks[1 - side];
    other.results.push_back(undefined_in(other, value->type));
    return graph_.new_output(branch, value->type, value->name);
  }

  void replace(const Value* old, Value* by) {
    const auto found = uses_.find(old);
    if (found == uses_.end()) return;
    const std::vector<Use> uses = std::move(found->second);
    uses_.erase(found);
    for (const Use& use : uses) {
      if (use.node != nullptr)
        use.node->inputs[use.operand] = by;
      else
        std::ranges::replace(const_cast<Block*>(use.block)->results, const_cast<Value*>(old), by);
      uses_[by].push_back(use);
    }
  }

  Graph& graph_;
  std::vector<Node*> branches_;
  std::unordered_map<const Value*, std::vector<Use>> uses_;
};

}  // namespace

graph::Graph leave_undefined(const graph::Graph& graph) {
  Graph result = with_plain_flags(graph);
  Sides(result).run();
  return copied(result);
}

}  // namespace janus::passes
