// See grouping.h.
#include "passes/grouping.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>

#include "passes/order.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Value;

/// Kernels larger than this are cut: compile time grows faster than what further fusing saves.
constexpr size_t kMaximumNodes = 48;
constexpr size_t kMaximumTensors = 28;  // operands and results

class UnionFind {
 public:
  explicit UnionFind(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  uint32_t find(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(uint32_t a, uint32_t b) {
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<uint32_t> parent_;
};

class Grouping {
 public:
  Grouping(const graph::Block& block, const CanFuse& can_fuse)
      : nodes_(block.nodes), before_(predecessors(block)), after_(successors(before_)) {
    for (const Node* node : nodes_)
      fusible_.push_back(node->outputs.size() == 1 && node->output()->type.is_tensor() &&
                         node->blocks.empty() && can_fuse(*node));
    for (uint32_t i = 0; i < nodes_.size(); ++i) positions_.emplace(nodes_[i], i);
    is_result_.resize(nodes_.size());
    for (const Value* result : block.results)
      if (const auto found = positions_.find(result->definition); found != positions_.end())
        is_result_[found->second] = true;
    find_levels();
    raise_levels();
  }

  Groups groups() {
    UnionFind sets(nodes_.size());
    unite_neighbours(sets);
    unite_readers(sets);
    std::map<uint32_t, std::vector<uint32_t>> members;
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (fusible_[i]) members[sets.find(i)].push_back(i);
    Groups result;
    for (const auto& [root, positions] : members) cut(positions, result);
    return result;
  }

 private:
  const graph::Shape& shape(uint32_t i) const { return nodes_[i]->output()->type.shape; }

  /// Whether a user of this node's result can be computed in the same loop.
  bool stays(uint32_t from, uint32_t to) const {
    return fusible_[from] && fusible_[to] && shape(from) == shape(to);
  }

  /// How many levels an edge goes up. Nodes that depend on nothing fusible are free: no way from a
  /// group back into it leads over them.
  uint32_t cost(uint32_t from, uint32_t to) const {
    return stays(from, to) || !follows_fusible_[from] ? 0 : 1;
  }

  void find_levels() {
    levels_.resize(nodes_.size());
    follows_fusible_ = fusible_;
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      for (const uint32_t before : before_[i]) {
        levels_[i] = std::max(levels_[i], levels_[before] + cost(before, i));
        if (follows_fusible_[before]) follows_fusible_[i] = true;
      }
  }

  /// Moves a node up to the level of its users where it joins them and keeps at most one tensor
  /// alive for longer.
  void raise_levels() {
    const std::vector<uint32_t> sources = count_sources();
    for (uint32_t i = static_cast<uint32_t>(nodes_.size()); i-- > 0;) {
      if (!fusible_[i] || after_[i].empty() || sources[i] > 1) continue;
      uint32_t highest = UINT32_MAX;
      bool joins = false;
      for (const uint32_t user : after_[i]) {
        const uint32_t limit = levels_[user] - cost(i, user);
        if (limit < highest) joins = false;
        highest = std::min(highest, limit);
        joins |= limit == highest && stays(i, user);
      }
      if (joins) levels_[i] = std::max(levels_[i], highest);
    }
  }

  /// For each fusible node, how many full-size tensors that the run computes flow into the chain
  /// that ends in it.
  std::vector<uint32_t> count_sources() const {
    std::vector<uint32_t> result(nodes_.size());
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!fusible_[i]) continue;
      const std::set<const Value*> operands(nodes_[i]->inputs.begin(), nodes_[i]->inputs.end());
      for (const Value* operand : operands) {
        const auto found = positions_.find(operand->definition);
        if (found == positions_.end() || !is_full_size(operand, i)) continue;
        const bool computed = !nodes_[found->second]->inputs.empty();
        result[i] += stays(found->second, i) ? result[found->second] : (computed ? 1 : 0);
      }
    }
    return result;
  }

  bool is_full_size(const Value* operand, uint32_t user) const {
    return operand->type.is_tensor() && operand->type.shape == shape(user);
  }

  void unite_neighbours(UnionFind& sets) const {
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      for (const uint32_t before : before_[i])
        if (stays(before, i) && levels_[before] == levels_[i]) sets.unite(before, i);
  }

  /// Nodes of one level that read the same tensor read it once.
  void unite_readers(UnionFind& sets) const {
    std::map<std::pair<const Value*, uint32_t>, uint32_t> first_reader;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!fusible_[i]) continue;
      for (const Value* operand : nodes_[i]->inputs) {
        if (!is_full_size(operand, i)) continue;
        const auto [entry, added] = first_reader.try_emplace({operand, levels_[i]}, i);
        if (!added) sets.unite(entry->second, i);
      }
    }
  }

  /// Pieces that kernels are willing to take. Each follows the one before in program order, so that
  /// cutting brings no cycle.
  void cut(std::span<const uint32_t> positions, Groups& groups) const {
    if (positions.size() == 1 || fits(positions)) {
      groups.emplace_back(positions.begin(), positions.end());
      return;
    }
    cut(positions.first(positions.size() / 2), groups);
    cut(positions.subspan(positions.size() / 2), groups);
  }

  bool fits(std::span<const uint32_t> piece) const {
    if (piece.size() > kMaximumNodes) return false;
    const auto is_inside = [&](uint32_t i) { return std::ranges::binary_search(piece, i); };
    std::set<const Value*> tensors;
    for (const uint32_t i : piece) {
      for (const Value* operand : nodes_[i]->inputs) {
        const auto found = positions_.find(operand->definition);
        const bool is_computed = found != positions_.end() && is_inside(found->second);
        if (operand->type.is_tensor() && !is_computed) tensors.insert(operand);
      }
      if (is_result_[i] || !std::ranges::all_of(after_[i], is_inside))
        tensors.insert(nodes_[i]->output());
    }
    return tensors.size() <= kMaximumTensors;
  }

  const std::vector<Node*>& nodes_;
  const Predecessors before_;
  const std::vector<std::vector<uint32_t>> after_;
  std::unordered_map<const Node*, uint32_t> positions_;
  std::vector<bool> fusible_;
  std::vector<bool> is_result_;        ///< given by the block
  std::vector<bool> follows_fusible_;  ///< is fusible or depends on something that is
  std::vector<uint32_t> levels_;
};

}  // namespace

Groups group_elementwise(const graph::Block& block, const CanFuse& can_fuse) {
  return Grouping(block, can_fuse).groups();
}

}  // namespace janus::passes
