// See schedule.h.
#include "passes/ordering/schedule.h"

#include <algorithm>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "graph/cost.h"
#include "graph/op.h"
#include "graph/owner.h"
#include "ops/collectives.h"
#include "ops/list.h"
#include "passes/analysis/certain.h"
#include "passes/ordering/effects.h"
#include "passes/ordering/order.h"
#include "passes/structure/captures.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::owner_of;
using graph::Trait;
using graph::Value;

bool is_write(const Node& node) { return node.op->is(Trait::writes_state); }

/// Marks the guards and all that must come before them. If processes communicate, also what else
/// may end the run, as that has to be decided before.
std::vector<bool> needed_by_guards(const graph::Block& block, const Predecessors& before) {
  std::vector<bool> needed(block.nodes.size());
  const bool has_exchange = std::ranges::any_of(
      block.nodes, [](const Node* node) { return node->op->is(Trait::communicates); });
  for (size_t i = needed.size(); i-- > 0;) {
    const auto effects = ordering_effects(*block.nodes[i]);
    if (std::ranges::find(effects, Effect::guard) != effects.end()) needed[i] = true;
    if (has_exchange && !is_certain(*block.nodes[i])) needed[i] = true;
    if (!needed[i]) continue;
    for (const uint32_t other : before[i]) needed[other] = true;
  }
  return needed;
}

constexpr uint32_t kNoCollective = UINT32_MAX;

/// By node: which collective can begin the sooner for it, as a number in their order.
std::vector<uint32_t> collectives_behind(const graph::Block& block, const Predecessors& before) {
  uint32_t count = 0;
  for (const Node* node : block.nodes) count += ops::begins_collective(*node) ? 1 : 0;
  std::vector<uint32_t> first(block.nodes.size(), kNoCollective);
  for (size_t i = first.size(); i-- > 0;) {
    if (ops::begins_collective(*block.nodes[i])) first[i] = --count;
    for (const uint32_t other : before[i]) first[other] = std::min(first[other], first[i]);
  }
  return first;
}

/// Counts, while nodes are put in order, which tensors still have users.
class Memory {
 public:
  explicit Memory(const graph::Graph& graph)
      : block_(graph.body()), users_(graph.value_count()), keeps_(graph.value_count()) {
    for (const Value* result : graph.results()) keeps_[owner_of(result)->id] = true;
    for (uint32_t i = 0; i < block_.nodes.size(); ++i)
      for (const Value* owner : owners_used_by(i)) {
        ++users_[owner->id].count;
        users_[owner->id].sum += i;
      }
  }

  /// Bytes taken minus bytes freed if node `i` ran now.
  int64_t growth(uint32_t i) const {
    const Node& node = *block_.nodes[i];
    int64_t sum = 0;
    if (!node.op->is(Trait::view))
      for (const Value* output : node.outputs) sum += graph::typical_bytes(output->type);
    for (const Value* owner : owners_used_by(i))
      if (users_[owner->id].count == 1) sum -= graph::typical_bytes(owner->type);
    return sum;
  }

  /// Node `i` runs; gives the nodes that have become the last user of something.
  std::vector<uint32_t> run(uint32_t i) {
    std::vector<uint32_t> last_users;
    for (const Value* owner : owners_used_by(i)) {
      Users& users = users_[owner->id];
      --users.count;
      users.sum -= i;
      if (users.count == 1) last_users.push_back(static_cast<uint32_t>(users.sum));
    }
    return last_users;
  }

 private:
  struct Users {
    uint64_t count = 0;
    uint64_t sum = 0;  ///< of their positions: the last user's position when one is left
  };

  /// Tensors of the run itself that the node uses, each once. Views use nothing: their users do.
  std::vector<const Value*> owners_used_by(uint32_t i) const {
    std::vector<const Value*> owners;
    const Node& node = *block_.nodes[i];
    if (node.op->is(Trait::view)) return owners;
    for (const Value* input : operands(node)) {
      const Value* owner = owner_of(input);
      const bool is_temporary = owner->definition != nullptr &&
                                owner->definition->op != &op::state && owner->type.is_tensor() &&
                                !keeps_[owner->id];
      if (is_temporary && std::ranges::find(owners, owner) == owners.end()) owners.push_back(owner);
    }
    return owners;
  }

  const graph::Block& block_;
  std::vector<Users> users_;  // by Value::id
  std::vector<bool> keeps_;   // by Value::id: owned by the caller
};

class Scheduler {
 public:
  explicit Scheduler(const graph::Graph& graph)
      : block_(graph.body()),
        before_(predecessors(block_)),
        after_(successors(before_)),
        memory_(graph),
        early_(needed_by_guards(block_, before_)),
        leads_to_(collectives_behind(block_, before_)),
        is_ready_(before_.size()) {}

  std::vector<Node*> order() {
    std::vector<size_t> waiting_for;
    for (const auto& others : before_) waiting_for.push_back(others.size());
    for (uint32_t i = 0; i < before_.size(); ++i)
      if (waiting_for[i] == 0) make_ready(i);

    std::vector<Node*> result;
    std::vector<bool> done(before_.size());
    while (!queue_.empty()) {
      const uint32_t next = std::get<3>(queue_.top());
      queue_.pop();
      if (done[next]) continue;
      done[next] = true;
      result.push_back(block_.nodes[next]);
      if (block_.nodes[next]->op->is(Trait::communicates)) {
        const bool was_waiting = std::exchange(is_waiting_, is_wait(next));
        for (uint32_t other = 0; is_waiting_ && !was_waiting && other < before_.size(); ++other)
          if (is_wait(other) && is_ready_[other] && !done[other]) push(other);  // they are due now
      }
      for (const uint32_t other : memory_.run(next))
        if (is_ready_[other] && !done[other]) push(other);
      for (const uint32_t other : after_[next])
        if (--waiting_for[other] == 0) make_ready(other);
    }
    TORCHJANUS_CHECK(result.size() == before_.size(), "schedule: nodes wait for each other");
    return result;
  }

 private:
  /// Smaller comes first. What is exchanged begins as soon as it can, and is waited for when there
  /// is nothing else to do.
  enum class Stage { guards, exchanges, work, waits, writes };
  using Key = std::tuple<Stage, uint32_t, bool, uint32_t>;

  bool is_wait(uint32_t i) const { return block_.nodes[i]->op == &op::collective_wait; }

  Stage stage_of(uint32_t i) const {
    const Node& node = *block_.nodes[i];
    if (early_[i]) return Stage::guards;
    if (is_wait(i) && !is_waiting_) return Stage::waits;
    if (node.op->is(Trait::communicates)) return Stage::exchanges;
    return is_write(node) ? Stage::writes : Stage::work;
  }

  /// What the first collective waits for comes first, so that it is on its way while the rest is
  /// computed. What no collective waits for is left to that time, unless it frees memory.
  uint32_t turn_of(uint32_t i, bool grows) const {
    if (leads_to_[i] == kNoCollective) return grows ? kNoCollective : 0;
    return leads_to_[i];
  }

  void make_ready(uint32_t i) {
    is_ready_[i] = true;
    push(i);
  }
  void push(uint32_t i) {
    const Stage stage = stage_of(i);
    const bool grows = stage == Stage::work && memory_.growth(i) > 0;
    queue_.emplace(stage, stage == Stage::work ? turn_of(i, grows) : 0, grows, i);
  }

  const graph::Block& block_;
  const Predecessors before_;
  const std::vector<std::vector<uint32_t>> after_;
  Memory memory_;
  const std::vector<bool> early_;
  const std::vector<uint32_t> leads_to_;
  std::vector<bool> is_ready_;
  /// For what was exchanged: one that fails must do so before anything is written, so what uses
  /// the first comes behind the last.
  bool is_waiting_ = false;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> queue_;
};

}  // namespace

graph::Graph schedule(graph::Graph graph) {
  graph.body().nodes = Scheduler(graph).order();
  return graph;
}

}  // namespace janus::passes
