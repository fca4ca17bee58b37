#include "trace/structure.h"

#include <algorithm>
#include <utility>

#include "base/policy.h"

namespace janus::trace {

// ---- Orders -----------------------------------------------------------------------------------

LevelOrder::LevelOrder(const Nodes& nodes, LevelId level) : nodes_(nodes), level_(level) {
  sort();
  find_dominators();
}

const std::vector<NodeId>& LevelOrder::children(NodeId node) const {
  static const std::vector<NodeId> none;
  return node == kEnd ? none : nodes_.children(level_, node);
}

/// Depth-first, without recursion: levels may be long chains.
void LevelOrder::sort() {
  std::vector<std::pair<NodeId, size_t>> path = {{kEntry, 0}};
  std::map<NodeId, bool> seen = {{kEntry, true}};
  while (!path.empty()) {
    const NodeId node = path.back().first;
    const std::vector<NodeId>& next = children(node);
    if (path.back().second == next.size()) {
      order_.push_back(node);
      path.pop_back();
      continue;
    }
    // The first child is finished last, so that it stands first.
    const NodeId child = next[next.size() - 1 - path.back().second++];
    if (!std::exchange(seen[child], true)) path.emplace_back(child, 0);
  }
  std::reverse(order_.begin(), order_.end());
  // All ends of paths are one node; nothing stands behind it.
  order_.erase(std::find(order_.begin(), order_.end(), kEnd));
  order_.push_back(kEnd);
  for (Position i = 0; i < order_.size(); ++i) positions_[order_[i]] = i;
  parents_.resize(order_.size());
  for (Position i = 0; i < order_.size(); ++i)
    for (const NodeId child : children(order_[i])) parents_[position(child)].push_back(i);
}

/// Cooper, Harvey and Kennedy's algorithm; without cycles one pass is enough.
void LevelOrder::find_dominators() {
  const size_t count = order_.size();
  dominator_.assign(count, 0);
  postdominator_.assign(count, count - 1);
  for (Position i = 1; i < count; ++i) {
    Position common = parents_[i].front();
    for (Position parent : parents_[i])
      while (parent != common)
        (parent > common ? parent : common) = dominator_[std::max(parent, common)];
    dominator_[i] = common;
  }
  for (Position i = count - 1; i-- > 0;) {
    Position common = position(children(order_[i]).front());
    for (const NodeId child : children(order_[i]))
      for (Position other = position(child); other != common;)
        (other < common ? other : common) = postdominator_[std::min(other, common)];
    postdominator_[i] = common;
  }
}

std::vector<NodeId> LevelOrder::joins_behind(NodeId node) const {
  std::vector<NodeId> result;
  const Position own = position(node);
  for (Position i = own + 1; i + 1 < order_.size(); ++i)
    if (dominator_[i] == own && parents_[i].size() > 1) result.push_back(order_[i]);
  return result;
}

bool LevelOrder::is_dominated(NodeId node, NodeId by) const {
  Position at = position(node);
  const Position goal = position(by);
  while (at > goal) at = dominator_[at];
  return at == goal;
}

bool LevelOrder::is_postdominated(NodeId node, NodeId by) const {
  Position at = position(node);
  const Position goal = position(by);
  while (at < goal) at = postdominator_[at];
  return at == goal;
}

// ---- Statements -------------------------------------------------------------------------------

namespace {

struct TooDeep {};

class LevelStructure {
 public:
  LevelStructure(const Nodes& nodes, LevelId level, int depth)
      : nodes_(nodes), level_(level), order_(nodes, level), depth_(depth) {}

  Statements run() {
    Statements result;
    add_from(kEntry, result);
    if (!has_landings_) remove_jumps(result);
    return result;
  }

 private:
  /// The node and all that it dominates.
  void add_from(NodeId node, Statements& out) {
    if (++depth_ > policy::kDeepestBranches) throw TooDeep();
    add_chain(node, out);
    --depth_;
  }

  void add_chain(NodeId node, Statements& out) {
    for (;;) {
      add_node(node, out);
      const std::vector<NodeId>& children = order_.children(node);
      if (children.size() == 1 && is_own(children.front())) {
        node = children.front();
        continue;
      }
      add_ways(node, out);
      const std::vector<NodeId> joins = order_.joins_behind(node);
      if (joins.empty()) return;
      for (size_t i = 0; i + 1 < joins.size(); ++i) add_join(node, joins[i], out);
      if (!order_.is_postdominated(node, joins.back())) return add_join(node, joins.back(), out);
      node = joins.back();
    }
  }

  /// Whether only one edge leads there.
  bool is_own(NodeId child) const { return child != kEnd && order_.parent_count(child) == 1; }

  void add_node(NodeId node, Statements& out) {
    if (node == kEntry) return;
    Statement statement{.kind = Statement::Kind::event, .node = node, .level = level_};
    if (nodes_.nodes[node].is_loop()) {
      statement.kind = Statement::Kind::loop;
      statement.blocks = {LevelStructure(nodes_, nodes_.nodes[node].body, depth_).run()};
    }
    out.push_back(std::move(statement));
  }

  void add_ways(NodeId node, Statements& out) {
    const std::vector<NodeId>& children = order_.children(node);
    if (children.size() == 1) return add_jump(children.front(), out);
    Statement select{.kind = Statement::Kind::select, .node = node, .level = level_};
    for (const NodeId child : children) {
      Statements& way = select.blocks.emplace_back();
      if (is_own(child)) {
        add_from(child, way);
      } else {
        add_jump(child, way);
      }
    }
    out.push_back(std::move(select));
  }

  void add_jump(NodeId to, Statements& out) {
    out.push_back({.kind = Statement::Kind::jump, .node = to, .level = level_});
  }

  void add_join(NodeId node, NodeId join, Statements& out) {
    if (order_.is_postdominated(node, join)) return add_from(join, out);
    has_landings_ = true;
    Statement landing{.kind = Statement::Kind::landing, .node = join, .level = level_};
    add_from(join, landing.blocks.emplace_back());
    out.push_back(std::move(landing));
  }

  void remove_jumps(Statements& statements) const {
    std::erase_if(statements, [this](const Statement& statement) {
      return statement.kind == Statement::Kind::jump && statement.level == level_;
    });
    for (Statement& statement : statements)
      if (statement.kind != Statement::Kind::loop)
        for (Statements& block : statement.blocks) remove_jumps(block);
  }

  const Nodes& nodes_;
  const LevelId level_;
  LevelOrder order_;
  int depth_;
  bool has_landings_ = false;
};

}  // namespace

std::optional<Statements> structured(const Nodes& nodes) {
  try {
    return LevelStructure(nodes, 0, 0).run();
  } catch (const TooDeep&) {
    return std::nullopt;
  }
}

}  // namespace janus::trace
