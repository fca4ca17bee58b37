// See reads_apart.h.
#include "passes/fusion/reads_apart.h"

#include <algorithm>
#include <map>
#include <vector>

#include "graph/rewriter.h"
#include "ops/index_space.h"
#include "ops/list.h"
#include "ops/read.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Value;

constexpr const char* note = "_other_name";

/// How a node reads an operand: two that read alike share one.
struct Way {
  enum class Kind : uint8_t { at_points, by_map, in_parts } kind = Kind::at_points;
  ops::IndexMap map;
  graph::Shape shape;          ///< of what is read by the map
  const Node* node = nullptr;  ///< that joins or pads it

  friend bool operator==(const Way&, const Way&) = default;
};

Way way_of(const Node& node, size_t input) {
  if (!ops::is_read_elsewhere(node, input)) return {};
  if (!ops::is_read(node))
    return {.kind = Way::Kind::in_parts, .map = {}, .shape = {}, .node = &node};
  return {.kind = Way::Kind::by_map,
          .map = ops::read_of(node).value().map,
          .shape = node.output()->type.shape};
}

class Separation {
 public:
  Separation(const graph::Graph& graph, const CanFuse& can_fuse)
      : can_fuse_(can_fuse), ways_(graph.value_count()), rewriter_(graph) {
    std::vector<bool> is_read(graph.value_count());
    graph::for_each_node(graph.body(), [&](const Node& node) {
      if (ops::is_read(node)) is_read[node.inputs[0]->id] = true;
    });
    graph::for_each_node(graph.body(), [&](const Node& node) {
      const auto matters = [&](const Value* input) { return is_read[input->id]; };
      if (std::ranges::any_of(node.inputs, matters) && may_be_fused(node)) note_ways(node);
    });
  }

  graph::Graph run() {
    rewriter_.run([&](const Node& node) { return read_another_name(node); });
    return rewriter_.finish();
  }

 private:
  struct Name {
    const graph::Block* block;
    const Value* value;
    Way way;
    Value* name;
  };

  bool may_be_fused(const Node& node) const {
    const Node* around = node.parent->parent;
    return (around == nullptr || around->op != &op::fused) && can_fuse_(node);
  }

  void note_ways(const Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i]->type.is_tensor()) continue;
      std::vector<Way>& ways = ways_[node.inputs[i]->id];
      Way way = way_of(node, i);
      if (std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
    }
  }

  bool read_another_name(const Node& node) {
    if (!ops::is_read(node) || !may_be_fused(node)) return false;
    const Value* operand = node.inputs[0];
    const bool is_index_too = std::ranges::count(node.inputs, operand) > 1;
    if (ways_[operand->id].size() < 2 || is_index_too) return false;
    Value* const own = rewriter_[operand];
    rewriter_.set(operand, name_of(node, own));
    rewriter_.copy(node);
    rewriter_.set(operand, own);
    return true;
  }

  /// Reads of one kind in a block share a name.
  Value* name_of(const Node& node, Value* own) {
    Way way = way_of(node, 0);
    for (const Name& each : names_)
      if (each.block == node.parent && each.value == node.inputs[0] && each.way == way)
        return each.name;
    Value* const name = rewriter_.builder().append(op::stop_fuse, {own}, {{note, true}})->output();
    names_.push_back({node.parent, node.inputs[0], std::move(way), name});
    return name;
  }

  const CanFuse& can_fuse_;
  std::vector<std::vector<Way>> ways_;  ///< by Value::id
  std::vector<Name> names_;
  graph::Rewriter rewriter_;
};

}  // namespace

graph::Graph with_reads_apart(const graph::Graph& graph, const CanFuse& can_fuse) {
  return Separation(graph, can_fuse).run();
}

bool is_other_name(const Node& node) {
  return node.op == &op::stop_fuse && node.attributes.find(note) != nullptr;
}

}  // namespace janus::passes
