// See flow.h.
#include "passes/batching/flow.h"

#include <algorithm>

#include "graph/functions.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Value;

// ---- components: Tarjan's algorithm, without the machine's stack ------------------------------

namespace {

class Components {
 public:
  explicit Components(const Edges& edges)
      : edges_(edges), number_(edges.size()), lowest_(edges.size()), found_(edges.size()) {}

  std::vector<uint32_t> find() {
    for (uint32_t vertex = 0; vertex < edges_.size(); ++vertex)
      if (number_[vertex] == 0) visit(vertex);
    // They were found from the last to the first.
    for (uint32_t& component : found_) component = count_ - component;
    return std::move(found_);
  }

 private:
  struct Visit {
    uint32_t vertex = 0;
    size_t next = 0;
  };

  void visit(uint32_t root) {
    std::vector<Visit> visits;
    const auto enter = [&](uint32_t vertex) {
      number_[vertex] = lowest_[vertex] = ++numbered_;
      open_.push_back(vertex);
      visits.push_back({vertex});
    };
    enter(root);
    while (!visits.empty()) {
      Visit& at = visits.back();
      const uint32_t vertex = at.vertex;
      if (at.next < edges_[vertex].size()) {
        const uint32_t to = edges_[vertex][at.next++];
        if (number_[to] == 0) {
          enter(to);
        } else if (found_[to] == 0) {
          lowest_[vertex] = std::min(lowest_[vertex], number_[to]);
        }
        continue;
      }
      visits.pop_back();
      if (!visits.empty()) {
        uint32_t& before = lowest_[visits.back().vertex];
        before = std::min(before, lowest_[vertex]);
      }
      if (lowest_[vertex] == number_[vertex]) close(vertex);
    }
  }

  void close(uint32_t first) {
    ++count_;
    for (uint32_t vertex = first + 1; vertex != first;) {
      vertex = open_.back();
      open_.pop_back();
      found_[vertex] = count_;
    }
  }

  const Edges& edges_;
  std::vector<uint32_t> number_, lowest_, found_, open_;  // found_: 0 while it is open
  uint32_t numbered_ = 0, count_ = 0;
};

}  // namespace

std::vector<uint32_t> components(const Edges& edges) { return Components(edges).find(); }

// ---- who leads to whom ------------------------------------------------------------------------

Flow::Flow(std::span<Node* const> functions, const IsWork& is_work) {
  for (const Node* function : functions) add(*function->blocks.front(), functions, is_work);
  find_families();
}

uint32_t Flow::vertex(const void* node_or_value) {
  const auto [found, is_new] =
      vertices_.try_emplace(node_or_value, static_cast<uint32_t>(edges_.size()));
  if (is_new) {
    edges_.emplace_back();
    is_work_.push_back(false);
  }
  return found->second;
}

void Flow::lead(const void* from, const void* to) {
  const uint32_t source = vertex(from), target = vertex(to);
  edges_[source].push_back(target);
}

void Flow::add(const Block& block, std::span<Node* const> functions, const IsWork& is_work) {
  for (const Node* node : block.nodes) {
    const uint32_t own = vertex(node);
    is_work_[own] = is_work(*node);
    for (const auto& nested : node->blocks) add(*nested, functions, is_work);
    const Node* called = node->op == &op::call ? graph::callee(*node) : nullptr;
    if (std::ranges::find(functions, called) != functions.end()) {
      add_call(*node, *called);
    } else if (node->op == &op::while_) {
      add_loop(*node);
    } else if (node->op == &op::if_) {
      for (const auto& side : node->blocks)
        for (size_t i = 0; i < node->outputs.size(); ++i) lead(side->results[i], node->outputs[i]);
    } else {
      for (const Value* input : node->inputs) lead(input, node);
      for (const Value* output : node->outputs) lead(node, output);
    }
  }
}

void Flow::add_call(const Node& call, const Node& function) {
  const Block& block = *function.blocks.front();
  for (size_t i = 0; i < call.inputs.size(); ++i) lead(call.inputs[i], block.parameters[i]);
  for (size_t i = 0; i < call.outputs.size(); ++i) lead(block.results[i], call.outputs[i]);
}

void Flow::add_loop(const Node& loop) {
  const Block &test = *loop.blocks[0], &body = *loop.blocks[1];
  for (size_t i = 0; i < loop.inputs.size(); ++i) {
    for (const Value* from : {loop.inputs[i], body.results[i]}) {
      lead(from, loop.outputs[i]);
      lead(from, test.parameters[i]);
      lead(from, body.parameters[i]);
    }
  }
}

// ---- families ---------------------------------------------------------------------------------

/// With more cycles than there are bits, the others tell nothing apart.
void Flow::find_families() {
  const std::vector<uint32_t> component = components(edges_);
  const uint32_t count = component.empty() ? 0 : *std::ranges::max_element(component) + 1;
  std::vector<uint32_t> size(count), work(count), cycle(count);
  for (uint32_t v = 0; v < edges_.size(); ++v) {
    ++size[component[v]];
    work[component[v]] += is_work_[v] ? 1 : 0;
  }
  uint32_t cycles = 0;
  std::vector<uint64_t> own(count), before(count), behind(count);
  for (uint32_t c = 0; c < count; ++c) {
    if (size[c] == 1 || work[c] == 0) continue;
    cycle[c] = ++cycles;
    own[c] = cycles <= 64 ? uint64_t{1} << (cycles - 1) : 0;
  }
  std::vector<std::vector<uint32_t>> members(count);
  for (uint32_t v = 0; v < edges_.size(); ++v) members[component[v]].push_back(v);
  for (uint32_t c = 0; c < count; ++c)
    for (const uint32_t v : members[c])
      for (const uint32_t to : edges_[v])
        if (component[to] != c) before[component[to]] |= before[c] | own[c];
  for (uint32_t c = count; c-- > 0;)
    for (const uint32_t v : members[c])
      for (const uint32_t to : edges_[v])
        if (component[to] != c) behind[c] |= behind[component[to]] | own[component[to]];
  for (const uint32_t c : component) families_.push_back({cycle[c], before[c], behind[c]});
}

Flow::Family Flow::family(const Node& node) const { return families_[vertices_.at(&node)]; }

std::vector<uint32_t> Flow::ranks(const std::vector<std::vector<Node*>>& units) const {
  std::vector<uint32_t> unit_of(edges_.size());
  for (uint32_t v = 0; v < edges_.size(); ++v) unit_of[v] = v;
  for (const std::vector<Node*>& unit : units)
    for (const Node* node : unit) unit_of[vertices_.at(node)] = vertices_.at(unit.front());
  Edges edges(edges_.size());
  for (uint32_t v = 0; v < edges_.size(); ++v)
    for (const uint32_t to : edges_[v])
      if (unit_of[v] != unit_of[to]) edges[unit_of[v]].push_back(unit_of[to]);
  return depths(edges, units);
}

/// The longest way to each unit, counted in units.
std::vector<uint32_t> Flow::depths(const Edges& edges,
                                   const std::vector<std::vector<Node*>>& units) const {
  const std::vector<uint32_t> component = components(edges);
  const uint32_t count = component.empty() ? 0 : *std::ranges::max_element(component) + 1;
  std::vector<bool> has_unit(count);
  std::vector<std::vector<uint32_t>> members(count);
  for (const std::vector<Node*>& unit : units)
    has_unit[component[vertices_.at(unit.front())]] = true;
  for (uint32_t v = 0; v < edges.size(); ++v) members[component[v]].push_back(v);
  std::vector<uint32_t> depth(count);
  for (uint32_t c = 0; c < count; ++c)
    for (const uint32_t v : members[c])
      for (const uint32_t to : edges[v])
        if (component[to] != c)
          depth[component[to]] = std::max(depth[component[to]], depth[c] + (has_unit[c] ? 1 : 0));
  std::vector<uint32_t> ranks;
  for (const std::vector<Node*>& unit : units)
    ranks.push_back(depth[component[vertices_.at(unit.front())]]);
  return ranks;
}

}  // namespace janus::passes
