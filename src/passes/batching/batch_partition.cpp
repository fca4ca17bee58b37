// See batch_partition.h.
#include "passes/batching/batch_partition.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>

#include "graph/op.h"
#include "ops/list.h"
#include "passes/ordering/order.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

class BatchPartition {
 public:
  BatchPartition(Block& block, const Recursion& recursion, const Flow& flow)
      : block_(block), recursion_(recursion), flow_(flow) {
    before_ = predecessors(block);
    find_stages();
    find_late();
    find_families();
    find_units();
  }

  std::vector<std::vector<Node*>> units() const { return grouped(block_.nodes, before_, unit_of_); }

 private:
  bool is_put_off(uint32_t i) const { return recursion_.is_put_off(*block_.nodes[i]); }

  /// Finds how often the way to a node goes from deferred nodes back to others. Nodes of one stage
  /// can be computed together.
  void find_stages() {
    stage_.resize(before_.size());
    for (uint32_t i = 0; i < before_.size(); ++i)
      for (const uint32_t other : before_[i])
        stage_[i] =
            std::max(stage_[i], stage_[other] + (is_put_off(other) && !is_put_off(i) ? 1 : 0));
    // A node with deferred users only is computed with the first of them.
    const auto after = successors(before_);
    for (auto i = static_cast<uint32_t>(before_.size()); i-- > 0;) {
      if (!is_put_off(i) || after[i].empty() || gives_result(*block_.nodes[i])) continue;
      uint32_t first = UINT32_MAX;
      for (const uint32_t user : after[i])
        first = std::min(first, is_put_off(user) ? stage_[user] : stage_[i]);
      stage_[i] = std::max(stage_[i], first);
    }
  }

  /// Finds nodes that only sums need; they are computed last in their stage.
  void find_late() {
    late_.resize(before_.size());
    const auto after = successors(before_);
    for (uint32_t i = static_cast<uint32_t>(before_.size()); i-- > 0;) {
      const Node& node = *block_.nodes[i];
      late_[i] = recursion_.accumulators.adds(node);
      if (late_[i] || !is_put_off(i) || after[i].empty() || gives_result(node)) continue;
      const uint32_t stage = stage_[after[i].front()];
      late_[i] = std::ranges::all_of(
          after[i], [&](uint32_t user) { return late_[user] && stage_[user] == stage; });
      if (late_[i]) stage_[i] = stage;
    }
  }

  bool gives_result(const Node& node) const {
    return std::ranges::any_of(block_.results,
                               [&](const Value* result) { return result->definition == &node; });
  }

  /// Makes units. Late nodes of a stage are one unit. Other nodes of one stage and family are a
  /// unit where they are connected. A unit is known by its first node.
  void find_units() {
    std::map<uint32_t, uint32_t> first_late;
    for (uint32_t i = 0; i < before_.size(); ++i) {
      unit_of_.push_back(i);
      if (!is_put_off(i)) continue;
      if (late_[i]) {
        unit_of_[i] = first_late.try_emplace(stage_[i], i).first->second;
        continue;
      }
      for (const uint32_t other : before_[i])
        if (is_put_off(other) && !late_[other] && stage_[other] == stage_[i] &&
            family_[other] == family_[i])
          join(unit_of_[other], unit_of_[i]);
    }
  }

  void join(uint32_t a, uint32_t b) {
    const auto [first, second] = std::minmax(a, b);
    std::ranges::replace(unit_of_, second, first);
  }

  /// Cheap nodes outside of cycles join the family of their users if it is one family, else that of
  /// their operands. (Running a unit costs more than running such a node.)
  void find_families() {
    const auto after = successors(before_);
    for (const Node* node : block_.nodes)
      family_.push_back(recursion_.is_put_off(*node) ? flow_.family(*node) : Flow::Family());
    const auto adopt = [&](uint32_t i, const std::vector<uint32_t>& others) {
      std::optional<Flow::Family> only;
      for (const uint32_t other : others) {
        if (!is_put_off(other) || late_[other] || stage_[other] != stage_[i]) continue;
        if (only && *only != family_[other]) return true;
        only = family_[other];
      }
      if (only) family_[i] = *only;
      return only.has_value();
    };
    std::vector<uint32_t> unused;
    for (auto i = static_cast<uint32_t>(before_.size()); i-- > 0;)
      if (costs_little(i) && !adopt(i, after[i])) unused.push_back(i);
    for (const uint32_t i : unused | std::views::reverse) adopt(i, before_[i]);
  }

  bool costs_little(uint32_t i) const {
    const Node& node = *block_.nodes[i];
    return is_put_off(i) && !late_[i] && family_[i].cycle == 0 &&
           (node.op->is(Trait::elementwise) || node.op->is(Trait::view) || node.op == &op::stack ||
            node.op == &op::full);
  }

  Block& block_;
  const Recursion& recursion_;
  const Flow& flow_;
  Predecessors before_;
  std::vector<uint32_t> stage_, unit_of_;
  std::vector<bool> late_;
  std::vector<Flow::Family> family_;
};

}  // namespace

std::vector<std::vector<Node*>> batch_partition(Block& block, const Recursion& recursion,
                                                const Flow& flow) {
  return BatchPartition(block, recursion, flow).units();
}

}  // namespace janus::passes
