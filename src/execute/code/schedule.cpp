// Guards first, writers last, program order otherwise.
#include "execute/code/schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/collectives.h"
#include "ops/list.h"
#include "ops/python.h"
#include "ops/read.h"

namespace janus::execute {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

namespace {

bool is_write(const Node& node) { return node.op == &op::commit || node.op == &op::rebind; }

void collect_used(const Node& node, std::unordered_set<const Value*>& own,
                  std::vector<const Value*>& used) {
  const auto use = [&](const Value* value) {
    if (!own.contains(value)) used.push_back(value);
  };
  std::for_each(node.inputs.begin(), node.inputs.end(), use);
  for (const auto& block : node.blocks) {
    own.insert(block->parameters.begin(), block->parameters.end());
    for (const Node* nested : block->nodes) {
      collect_used(*nested, own, used);
      own.insert(nested->outputs.begin(), nested->outputs.end());
    }
    std::for_each(block->results.begin(), block->results.end(), use);
  }
}

/// Nodes by number, with edges from what must run before to what must run after.
class Order {
 public:
  explicit Order(const Block& body) : body_(body) {
    for (const Node* node : body.nodes) {
      number_[node] = nodes_.size();
      nodes_.push_back(node);
    }
    before_.resize(nodes_.size());
    after_.resize(nodes_.size());
    phase_.assign(nodes_.size(), 1);
    add_data_edges();
    add_effect_edges();
    add_symbol_edges();
  }

  Schedule make() {
    mark_guards();
    mark_tail();
    return sort();
  }

 private:
  void edge(size_t from, size_t to) {
    after_[from].push_back(to);
    before_[to].push_back(from);
  }

  void add_data_edges() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (const Node* function : graph::functions_run_by(*nodes_[n]))
        edge(number_.at(function), n);
      for (const Value* value : used_values(*nodes_[n])) {
        if (value->definition == nullptr) continue;
        const auto found = number_.find(value->definition);
        if (found != number_.end()) edge(found->second, n);
      }
    }
  }

  /// What mentions a dimension comes after what gives it its value.
  void add_symbol_edges() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const std::string symbol = graph::symbol_given_by(*nodes_[n]);
      if (symbol.empty()) continue;
      for (size_t later = n + 1; later < nodes_.size(); ++later)
        if (graph::mentions(*nodes_[later], symbol)) edge(n, later);
    }
  }

  /// Nodes that draw random numbers, use the heap or communicate keep their order. A clock is read
  /// when all before it is done and nothing behind it has begun.
  void add_effect_edges() {
    size_t last_random = nodes_.size();
    size_t last_heap = nodes_.size();
    size_t last_exchange = nodes_.size();
    size_t since_clock = 0;  // one behind the last one that was read
    for (size_t n = 0; n < nodes_.size(); ++n) {
      bool random = false;
      bool heap = false;
      bool clock = false;
      graph::for_each_run(*nodes_[n], [&](const Node& node) {
        random |= draws(node);
        heap |= node.op->is(Trait::reads_heap) || node.op->is(Trait::writes_heap);
        clock |= ops::reads_clock(node);
      });
      if (random) {
        if (last_random < nodes_.size()) edge(last_random, n);
        last_random = n;
      }
      if (heap && !is_write(*nodes_[n])) {
        if (last_heap < nodes_.size()) edge(last_heap, n);
        last_heap = n;
      }
      if (ops::begins_collective(*nodes_[n])) {
        if (last_exchange < nodes_.size()) edge(last_exchange, n);
        last_exchange = n;
      }
      if (since_clock > 0) edge(since_clock - 1, n);
      if (!clock) continue;
      for (size_t other = since_clock; other < n; ++other)
        if (!is_write(*nodes_[other])) edge(other, n);
      since_clock = n + 1;
    }
  }

  void mark(size_t start, int phase, const std::vector<std::vector<size_t>>& edges) {
    std::vector<size_t> stack{start};
    while (!stack.empty()) {
      const size_t n = stack.back();
      stack.pop_back();
      if (phase_[n] == phase) continue;
      phase_[n] = phase;
      stack.insert(stack.end(), edges[n].begin(), edges[n].end());
    }
  }

  void mark_guards() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n]->op == &op::guard) mark(n, 0, before_);
    }
  }

  /// Whether a node and everything after it can't fail and writes nothing but its results.
  bool is_safe(size_t n) {
    if (is_write(*nodes_[n])) return true;
    if (nodes_[n]->op != &op::fused || phase_[n] == 0 || looks_up(*nodes_[n])) return false;
    const auto known = safe_.find(n);
    if (known != safe_.end()) return known->second;
    const bool safe =
        std::all_of(after_[n].begin(), after_[n].end(), [&](size_t next) { return is_safe(next); });
    safe_[n] = safe;
    return safe;
  }

  static bool looks_up(const Node& fused) {
    return std::ranges::any_of(fused.blocks[0]->nodes,
                               [](const Node* node) { return ops::looks_up(*node); });
  }

  void mark_tail() {
    for (const Node* node : body_.nodes) {
      if (node->op != &op::commit) continue;
      const auto found = number_.find(node->inputs[0]->definition);
      if (found != number_.end() && is_safe(found->second)) mark(found->second, 2, after_);
    }
    find_uses_of_cells();
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (phase_[n] == 2 && nodes_[n]->op == &op::fused) add_readers_first(n);
    }
  }

  /// Tail nodes that read the old contents of a cell that `writer` overwrites come before it,
  /// where that is possible.
  void add_readers_first(size_t writer) {
    for (const Value* output : nodes_[writer]->outputs) {
      const auto cells = cells_written_.find(output);
      if (cells == cells_written_.end()) continue;
      for (const std::string& cell : cells->second)
        for (const size_t reader : readers_[cell])
          if (reader != writer && phase_[reader] == 2 && !reaches(writer, reader))
            edge(reader, writer);
    }
  }

  /// Which cells each value is written to, and who reads the old contents of each.
  void find_uses_of_cells() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const Node& node = *nodes_[n];
      if (node.op == &op::commit)
        cells_written_[node.inputs[0]].push_back(node.attributes.get<std::string>("cell"));
      for (const Value* input : node.inputs) {
        if (input->definition == nullptr || input->definition->op != &op::state) continue;
        std::vector<size_t>& readers =
            readers_[input->definition->attributes.get<std::string>("cell")];
        if (readers.empty() || readers.back() != n) readers.push_back(n);
      }
    }
  }

  bool reaches(size_t from, size_t to) const {
    std::vector<size_t> stack{from};
    std::unordered_set<size_t> seen;
    while (!stack.empty()) {
      const size_t n = stack.back();
      stack.pop_back();
      if (n == to) return true;
      if (seen.insert(n).second) stack.insert(stack.end(), after_[n].begin(), after_[n].end());
    }
    return false;
  }

  Schedule sort() {
    using Key = std::pair<int, size_t>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    std::vector<size_t> missing(nodes_.size());
    for (size_t n = 0; n < nodes_.size(); ++n) {
      missing[n] = before_[n].size();
      if (missing[n] == 0) ready.emplace(phase_[n], n);
    }
    Schedule schedule;
    bool in_tail = false;
    while (!ready.empty()) {
      const auto [phase, n] = ready.top();
      ready.pop();
      for (size_t next : after_[n]) {
        if (--missing[next] == 0) ready.emplace(phase_[next], next);
      }
      if (is_write(*nodes_[n])) continue;
      if (phase == 2 && !in_tail) {
        in_tail = true;
        schedule.tail = schedule.order.size();
      }
      schedule.order.push_back(nodes_[n]);
    }
    if (!in_tail) schedule.tail = schedule.order.size();
    for (const Node* node : body_.nodes) {
      if (is_write(*node)) schedule.writes.push_back(node);
    }
    TORCHJANUS_CHECK(schedule.order.size() + schedule.writes.size() == nodes_.size(),
                     "make_schedule: the nodes' order has a cycle");
    return schedule;
  }

  const Block& body_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, size_t> number_;
  std::vector<std::vector<size_t>> before_, after_;
  std::vector<int> phase_;  // 0 guards and what they need, 1 the rest, 2 writers
  std::unordered_map<size_t, bool> safe_;
  std::unordered_map<const Value*, std::vector<std::string>> cells_written_;
  std::unordered_map<std::string, std::vector<size_t>> readers_;  // by cell, in order
};

}  // namespace

std::vector<const Value*> used_values(const Node& node) {
  std::unordered_set<const Value*> own;
  std::vector<const Value*> used;
  collect_used(node, own, used);
  for (const Node* function : graph::functions_run_by(node)) collect_used(*function, own, used);
  return used;
}

bool draws(const Node& node) {
  if (node.op == &op::opaque) return node.attributes.get_or<bool>("_draws", false);
  return node.op->is(Trait::random);
}

Schedule make_schedule(const Block& body) { return Order(body).make(); }

}  // namespace janus::execute
