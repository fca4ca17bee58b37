// See grouping.h.
#include "passes/fusion/grouping.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/policy.h"
#include "graph/cost.h"
#include "graph/op.h"
#include "ops/index_space.h"
#include "ops/list.h"
#include "ops/read.h"
#include "passes/fusion/reads_apart.h"
#include "passes/ordering/order.h"
#include "passes/structure/captures.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Value;

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
  /// One more element, in a set of its own.
  uint32_t add() {
    parent_.push_back(static_cast<uint32_t>(parent_.size()));
    return parent_.back();
  }

 private:
  std::vector<uint32_t> parent_;
};

/// How a node goes over memory.
struct Kind {
  graph::Shape space;
  std::optional<ops::Reduction>
      reduction;  ///< what is reduced, by it or by what it is computed with
  bool for_rows =
      false;  ///< elementwise, once for each row of the reduction that it is computed with
};

class Grouping {
 public:
  Grouping(const graph::Block& block, const CanFuse& can_fuse,
           const std::unordered_set<const Node*>& excluded)
      : nodes_(block.nodes),
        before_(predecessors(block)),
        after_(successors(before_)),
        sets_(nodes_.size()),
        set_of_(nodes_.size()) {
    std::iota(set_of_.begin(), set_of_.end(), 0);
    for (const Node* node : nodes_) {
      fusible_.push_back(!excluded.contains(node) && gives_tensors(*node) && node->blocks.empty() &&
                         can_fuse(*node));
      Kind& kind = kinds_.emplace_back();
      if (!fusible_.back()) continue;
      kind.reduction = ops::reduction_of(*node);
      kind.space = kind.reduction ? kind.reduction->space : node->output()->type.shape;
      if (kind.reduction && !ops::has_rows_enough(*kind.reduction)) fusible_.back() = false;
    }
    for (uint32_t i = 0; i < nodes_.size(); ++i) positions_.emplace(nodes_[i], i);
    is_result_.resize(nodes_.size());
    is_used_.resize(nodes_.size());
    const auto mark = [&](const Value* value, std::vector<bool>& marked) {
      if (const auto found = positions_.find(value->definition); found != positions_.end())
        marked[found->second] = true;
    };
    for (const Value* result : block.results) {
      mark(result, is_result_);
      mark(result, is_used_);
    }
    for (const Node* node : nodes_)
      for (const Value* operand : operands(*node)) mark(operand, is_used_);
    leave_what_nothing_follows();
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      reductions_.push_back(fusible_[i] ? kinds_[i].reduction : std::nullopt);
    find_levels();
    raise_levels();
  }

  Groups groups() {
    unite_neighbours();
    unite_readers();
    std::map<uint32_t, std::vector<uint32_t>> members;
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (fusible_[i]) members[set(i)].push_back(i);
    Groups result;
    for (const auto& [root, positions] : members) cut(positions, result);
    return result;
  }

 private:
  /// Where None stands nobody needs a gradient.
  static bool gives_tensors(const Node& node) {
    const auto is_tensor = [](const Value* v) { return v->type.is_tensor(); };
    const bool is_known =
        node.outputs.size() == 1 || ops::reduction_of(node).has_value() || ops::is_pooling(node);
    return is_known && std::ranges::any_of(node.outputs, is_tensor) &&
           std::ranges::all_of(node.outputs,
                               [&](const Value* v) { return is_tensor(v) || v->type.is_none(); });
  }

  /// What ATen joins, pads or looks up as fast is no reason for levels where nothing is computed
  /// with it, nor for it. In kernels only indices that somebody needs are looked at.
  void leave_what_nothing_follows() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!fusible_[i] || !ops::is_reindexing(*nodes_[i]) || nodes_[i]->op->aten.empty()) continue;
      const auto follows = [&](uint32_t user) { return stays(i, user); };
      const auto precedes = [&](uint32_t source) { return stays(source, i); };
      fusible_[i] =
          is_used_[i] && (reads_faster(*nodes_[i]) || std::ranges::any_of(after_[i], follows) ||
                          std::ranges::any_of(before_[i], precedes));
    }
  }

  uint32_t set(uint32_t i) { return sets_.find(set_of_[i]); }

  // --- who fits whom

  /// Whether a user of this kind can be computed in the same loops. What sets already hold is not
  /// asked.
  bool stays(uint32_t from, uint32_t to, const Kind& kind) const {
    if (!fusible_[from] || !fusible_[to] || kinds_[from].space != kind.space) return false;
    if (is_read_elsewhere(from, to)) return false;
    const auto& given = kinds_[from].reduction;
    if (given && kind.reduction && !(*given == *kind.reduction)) return false;
    return std::ranges::all_of(nodes_[to]->inputs, [&](const Value* operand) {
      return operand->definition != nodes_[from] || reaches(operand->type.shape, kind);
    });
  }
  bool stays(uint32_t from, uint32_t to) const { return stays(from, to, kinds_[to]); }

  /// Whether it needs what the other gives in memory.
  bool is_read_elsewhere(uint32_t from, uint32_t to) const {
    const auto& operands = nodes_[to]->inputs;
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i]->definition == nodes_[from] && ops::is_read_elsewhere(*nodes_[to], i))
        return true;
    return false;
  }

  /// Whether a value of a kernel over this space lies in it as its user reads it.
  static bool reaches(const graph::Shape& shape, const Kind& kind) {
    if (shape == kind.space) return !kind.for_rows;
    return shape.size() == kind.space.size() || are_leading(kind);
  }

  /// Whether what is left of the space after the reduction are its last dimensions.
  static bool are_leading(const Kind& kind) {
    if (!kind.reduction) return false;
    const auto& dims = kind.reduction->dims;
    return !dims.empty() && dims.back() + 1 == static_cast<int64_t>(dims.size());
  }

  /// The kind of an elementwise node that goes along with the rows of `from`, whose result it uses.
  std::optional<Kind> kind_for_rows(uint32_t from, uint32_t to) const {
    const Kind& kind = kinds_[from];
    if (!fusible_[from] || !fusible_[to] || kinds_[to].reduction || !kind.reduction)
      return std::nullopt;
    const graph::Shape& shape = nodes_[to]->output()->type.shape;
    if (shape == kind.space || shape.size() != kind.space.size()) return std::nullopt;
    const bool uses_row = std::ranges::any_of(nodes_[to]->inputs, [&](const Value* operand) {
      return operand->definition == nodes_[from] && operand->type.shape == shape;
    });
    if (!uses_row) return std::nullopt;
    return Kind{kind.space, kind.reduction, true};
  }

  /// Whether one kernel may hold both sets, and `kind`: it has one set of reduced dimensions.
  bool compatible(const std::vector<uint32_t>& members,
                  const std::optional<ops::Reduction>& reduction) {
    const ops::Reduction* common = reduction ? &*reduction : nullptr;
    for (const uint32_t member : members) {
      const auto& other = reductions_[set(member)];
      if (!other) continue;
      if (common != nullptr && !(*common == *other)) return false;
      common = &*other;
    }
    return true;
  }

  void unite(uint32_t a, uint32_t b) {
    const auto first = reductions_[set(a)], second = reductions_[set(b)];
    sets_.unite(set_of_[a], set_of_[b]);
    reductions_[set(a)] = first ? first : second;
  }

  // --- levels

  /// How many levels an edge goes up. Nodes that depend on nothing fusible are free: no way from a
  /// group back into it leads over them. Another name is a level above what it names.
  uint32_t cost(uint32_t from, uint32_t to, const Kind& kind) const {
    if (is_other_name(*nodes_[from])) return 0;
    return stays(from, to, kind) || !follows_fusible_[from] ? 0 : 1;
  }
  uint32_t cost(uint32_t from, uint32_t to) const { return cost(from, to, kinds_[to]); }

  uint32_t level_as(uint32_t i, const Kind& kind) const {
    uint32_t level = 0;
    for (const uint32_t before : before_[i])
      level = std::max(level, levels_[before] + cost(before, i, kind));
    return level;
  }

  void find_levels() {
    levels_.resize(nodes_.size());
    follows_fusible_ = fusible_;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      for (const uint32_t before : before_[i])
        if (follows_fusible_[before]) follows_fusible_[i] = true;
      levels_[i] = level_as(i, kinds_[i]);
      for (const uint32_t before : before_[i]) {
        const auto kind = kind_for_rows(before, i);
        if (!kind || level_as(i, *kind) >= levels_[i]) continue;
        kinds_[i] = *kind;
        levels_[i] = level_as(i, *kind);
      }
      if (fusible_[i]) join_sources(i);
    }
  }

  /// Puts a node into one set with those that it is computed with on its level; a level higher if
  /// they do not fit one kernel.
  void join_sources(uint32_t i) {
    std::vector<uint32_t> joined;
    for (const uint32_t before : before_[i])
      if (stays(before, i) && levels_[before] == levels_[i]) joined.push_back(before);
    if (!compatible(joined, kinds_[i].reduction)) {
      ++levels_[i];
      if (kinds_[i].for_rows) kinds_[i] = {nodes_[i]->output()->type.shape, std::nullopt, false};
      joined.clear();
    }
    reductions_[set(i)] = kinds_[i].reduction;
    for (const uint32_t before : joined) unite(before, i);
  }

  /// Moves a node up to the level of its users where it joins them and keeps at most one tensor
  /// alive for longer.
  void raise_levels() {
    const std::vector<uint32_t> sources = count_sources();
    for (uint32_t i = static_cast<uint32_t>(nodes_.size()); i-- > 0;) {
      if (!fusible_[i] || after_[i].empty() || sources[i] > 1) continue;
      uint32_t highest = UINT32_MAX;
      for (const uint32_t user : after_[i])
        highest = std::min(highest, levels_[user] - cost(i, user));
      if (highest <= levels_[i]) continue;
      std::vector<uint32_t> joined;
      for (const uint32_t user : after_[i])
        if (levels_[user] == highest && stays(i, user)) joined.push_back(user);
      if (joined.empty() || kinds_[i].for_rows || !compatible(joined, kinds_[i].reduction))
        continue;
      raise(i, highest, joined);
    }
  }

  void raise(uint32_t i, uint32_t level, const std::vector<uint32_t>& joined) {
    levels_[i] = level;
    set_of_[i] = sets_.add();
    reductions_.push_back(kinds_[i].reduction);
    for (const uint32_t user : joined) unite(user, i);
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
    return operand->type.is_tensor() && operand->type.shape == kinds_[user].space;
  }

  /// The sets anew, without those that nodes which moved away held together.
  void unite_neighbours() {
    sets_ = UnionFind(nodes_.size());
    std::iota(set_of_.begin(), set_of_.end(), 0);
    reductions_.clear();
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      reductions_.push_back(fusible_[i] ? kinds_[i].reduction : std::nullopt);
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      for (const uint32_t before : before_[i])
        if (stays(before, i) && levels_[before] == levels_[i]) unite(before, i);
  }

  /// Nodes of one level that read the same tensor read it once.
  void unite_readers() {
    std::map<std::pair<const Value*, uint32_t>, std::vector<uint32_t>> readers;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!fusible_[i] || ops::is_reindexing(*nodes_[i])) continue;
      for (const Value* operand : nodes_[i]->inputs) {
        if (!is_full_size(operand, i)) continue;
        std::vector<uint32_t>& others = readers[{operand, levels_[i]}];
        const auto found = std::ranges::find_if(
            others, [&](uint32_t other) { return compatible({i, other}, std::nullopt); });
        if (found != others.end())
          unite(*found, i);
        else
          others.push_back(i);
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
    if (piece.size() > policy::kMostFusedNodes) return false;
    const auto is_inside = [&](uint32_t i) { return std::ranges::binary_search(piece, i); };
    std::set<const Value*> tensors;
    for (const uint32_t i : piece) {
      for (const Value* operand : nodes_[i]->inputs) {
        const auto found = positions_.find(operand->definition);
        const bool is_computed = found != positions_.end() && is_inside(found->second);
        if (operand->type.is_tensor() && !is_computed) tensors.insert(operand);
      }
      if (is_result_[i] || !std::ranges::all_of(after_[i], is_inside))
        tensors.insert(nodes_[i]->outputs.begin(), nodes_[i]->outputs.end());
    }
    return tensors.size() <= policy::kMostFusedTensors;
  }

  const std::vector<Node*>& nodes_;
  const Predecessors before_;
  const std::vector<std::vector<uint32_t>> after_;
  std::unordered_map<const Node*, uint32_t> positions_;
  std::vector<bool> fusible_;
  std::vector<bool> is_result_;        ///< given by the block
  std::vector<bool> is_used_;          ///< somebody needs a result of it
  std::vector<bool> follows_fusible_;  ///< is fusible or depends on something that is
  std::vector<uint32_t> levels_;
  std::vector<Kind> kinds_;
  UnionFind sets_;
  std::vector<uint32_t> set_of_;  ///< a node that was moved to another level is in a set of its own
  std::vector<std::optional<ops::Reduction>> reductions_;  ///< by set
};

/// Whether it asks for a space, not only for operands that broadcast.
bool needs_space(const Node* node) {
  return ops::reduction_of(*node).has_value() || ops::is_reindexing(*node);
}

/// Whether one kernel can compute the nodes, and store what others use of them.
class Feasibility {
 public:
  explicit Feasibility(const graph::Block& block) {
    for (const Node* node : block.nodes)
      for (const Value* operand : operands(*node)) users_[operand].push_back(node);
    for (const Value* result : block.results) users_[result].push_back(nullptr);
  }

  bool holds(const std::vector<const Node*>& members) const {
    const auto space = ops::IndexSpace::of(members);
    if (!space) return false;
    const std::unordered_set<const Node*> inside(members.begin(), members.end());
    for (const Node* member : members)
      for (const Value* output : member->outputs)
        if (is_used_outside(output, inside) && !space->is_storable(output)) return false;
    return true;
  }

  /// Whether a kernel that reduces nothing can store what others use: values of one shape.
  bool has_one_shape(const std::vector<const Node*>& members) const {
    const std::unordered_set<const Node*> inside(members.begin(), members.end());
    const graph::Shape* shape = nullptr;
    for (const Node* member : members) {
      if (!is_used_outside(member->output(), inside)) continue;
      const graph::Shape& own = member->output()->type.shape;
      if (shape != nullptr && own != *shape) return false;
      shape = &own;
    }
    return true;
  }

 private:
  bool is_used_outside(const Value* value, const std::unordered_set<const Node*>& inside) const {
    const auto found = users_.find(value);
    return found != users_.end() && !std::ranges::all_of(found->second, [&](const Node* user) {
             return inside.contains(user);
           });
  }

  std::unordered_map<const Value*, std::vector<const Node*>> users_;
};

/// What reads at other places, as ATen does that well; else all that asks for a space.
void exclude(const std::vector<const Node*>& members, std::unordered_set<const Node*>& excluded) {
  const auto reads = [](const Node* node) { return ops::is_reindexing(*node); };
  const auto all = std::inserter(excluded, excluded.end());
  if (std::ranges::any_of(members, reads))
    std::ranges::copy_if(members, all, reads);
  else
    std::ranges::copy_if(members, all, needs_space);
}

/// Pooling apart from reductions: those may go over their space several times, and would read all
/// windows each time. It reads what is in memory, so nothing of its group stands in front of it.
void split_pooling(const graph::Block& block, std::vector<uint32_t>& group, Groups& groups) {
  const auto reduces = [&](uint32_t i) { return ops::reduction_of(*block.nodes[i]).has_value(); };
  const auto pools = [&](uint32_t i) { return ops::is_pooling(*block.nodes[i]); };
  if (!std::ranges::any_of(group, reduces)) return;
  for (const uint32_t i : group)
    if (pools(i)) groups.push_back({i});
  std::erase_if(group, pools);
}

/// Rows apart from points where a cut has parted both from their reduction. What is computed once
/// for each row uses nothing that is computed at each point, so this brings no cycle.
void split_by_shape(const graph::Block& block, const std::vector<uint32_t>& group, Groups& groups) {
  const auto shape_of = [&](uint32_t i) { return block.nodes[i]->output()->type.shape; };
  std::vector<uint32_t> rest = group;
  while (!rest.empty()) {
    const graph::Shape shape = shape_of(rest.front());
    std::vector<uint32_t>& alike = groups.emplace_back();
    std::ranges::copy_if(rest, std::back_inserter(alike),
                         [&](uint32_t i) { return shape_of(i) == shape; });
    std::erase_if(rest, [&](uint32_t i) { return shape_of(i) == shape; });
  }
}

}  // namespace

bool has_few_elements(const Node& node) {
  const auto is_few = [](const Value* value) {
    return !value->type.is_tensor() || graph::typical_elements(value->type) <= policy::kFewElements;
  };
  // Of a table only those rows are read that are looked up.
  const std::span<Value* const> inputs(node.inputs);
  return std::ranges::all_of(inputs.subspan(ops::looks_up(node) ? 1 : 0), is_few) &&
         std::ranges::all_of(node.outputs, is_few);
}

/// ATen copies whole rows, joins, pads and turns as fast; elements it takes one by one, those of
/// windows with a branch at each.
bool reads_faster(const Node& node) {
  const graph::Access access = node.op->access;
  if (access == graph::Access::gathered || access == graph::Access::subscripted ||
      ops::is_pooling(node))
    return true;
  return ops::is_read(node) && has_few_elements(node);
}

Groups find_groups(const graph::Block& block, const CanFuse& can_fuse) {
  std::unordered_set<const Node*> excluded;
  const Feasibility feasibility(block);
  for (;;) {
    Groups groups;
    const size_t before = excluded.size();
    for (std::vector<uint32_t>& group : Grouping(block, can_fuse, excluded).groups()) {
      split_pooling(block, group, groups);
      std::vector<const Node*> members;
      for (const uint32_t i : group) members.push_back(block.nodes[i]);
      const bool asks = std::ranges::any_of(members, needs_space);
      if (asks && !feasibility.holds(members)) exclude(members, excluded);
      if (asks || feasibility.has_one_shape(members))
        groups.push_back(std::move(group));
      else
        split_by_shape(block, group, groups);
    }
    if (excluded.size() == before) return groups;
  }
}

}  // namespace janus::passes
