// See common_subexpressions.h.
#include "passes/cleanup/common_subexpressions.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "graph/rewriter.h"
#include "ops/list.h"
#include "ops/rows.h"
#include "passes/analysis/escaping.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Trait;
using graph::Value;

/// Equality by bits: 0.0 and -0.0 are different, a NaN equals itself.
bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool same(const graph::AttributeValue& a, const graph::AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* number = std::get_if<double>(&a)) return same(*number, std::get<double>(b));
  if (const auto* list = std::get_if<std::vector<double>>(&a)) {
    const auto& other = std::get<std::vector<double>>(b);
    return std::equal(list->begin(), list->end(), other.begin(), other.end(),
                      [](double x, double y) { return same(x, y); });
  }
  return a == b;
}

bool same(const graph::Attributes& a, const graph::Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same(x.second, y.second);
  });
}

bool same_types(const Node& a, const Node& b) {
  return std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    [](const Value* x, const Value* y) { return x->type == y->type; });
}

void mix(size_t& hash, size_t part) {
  hash ^= part + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
}

size_t hash_of(const graph::AttributeValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return std::hash<int64_t>()(*number);
  if (const auto* number = std::get_if<double>(&value)) return std::bit_cast<uint64_t>(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return std::hash<std::string>()(*text);
  return value.index();
}

size_t hash_of(const Node& node, std::span<Value* const> operands) {
  size_t hash = std::hash<const void*>()(node.op);
  for (const Value* operand : operands) mix(hash, operand->id);
  for (const auto& [name, value] : node.attributes) mix(hash, hash_of(value));
  return hash;
}

/// The heap stays as it is while a graph runs.
bool can_be_merged(const Node& node) {
  return (node.op->is(Trait::pure) || node.op->is(Trait::reads_heap)) &&
         !node.op->is(Trait::random) && !node.op->is(Trait::writes_heap) && node.blocks.empty() &&
         !node.outputs.empty();
}

/// Nodes of the new graph by hash, with the block of the old graph that each stands for one of.
class Available {
 public:
  /// The copy of an earlier node that is visible at `node` and gives the same.
  const Node* find(size_t hash, const Node& node, std::span<Value* const> operands) const {
    const auto [begin, end] = entries_.equal_range(hash);
    for (auto entry = begin; entry != end; ++entry) {
      const auto& [other, block] = entry->second;
      if (other->op == node.op && std::ranges::equal(other->inputs, operands) &&
          same(other->attributes, node.attributes) && same_types(*other, node) &&
          encloses(*block, node))
        return other;
    }
    return nullptr;
  }
  void add(size_t hash, const Node* copy, const Node& original) {
    entries_.emplace(hash, std::pair(copy, original.parent));
  }

 private:
  /// What stands in a function is not there any more when its `rows` are computed.
  static bool encloses(const graph::Block& block, const Node& node) {
    bool is_put_off = false;
    const graph::Block* around = node.parent;
    while (around != nullptr && around != &block) {
      const Node* owner = around->parent;
      is_put_off |= owner != nullptr && owner->op == &op::rows;
      around = owner == nullptr ? nullptr : owner->parent;
    }
    return around != nullptr && (!is_put_off || around->parent == nullptr);
  }

  std::unordered_multimap<size_t, std::pair<const Node*, const graph::Block*>> entries_;
};

}  // namespace

graph::Graph merge_common_subexpressions(const graph::Graph& graph) {
  const Escaping escaping(graph);
  // Two reads of one cell are the same tensor for the program, too.
  const auto escapes = [&](const Node& node) {
    return node.op != &op::state && std::ranges::any_of(node.outputs, [&](const Value* value) {
             return escaping.contains(value);
           });
  };
  graph::Rewriter rewriter(graph);
  Available available;
  rewriter.run([&](const Node& node) {
    if (!can_be_merged(node) || escapes(node)) return false;
    const std::vector<Value*> operands = rewriter[node.inputs];
    const size_t hash = hash_of(node, operands);
    if (const Node* earlier = available.find(hash, node, operands)) {
      rewriter.replace(node, earlier->outputs);
      return true;
    }
    available.add(hash, rewriter.copy(node), node);
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
