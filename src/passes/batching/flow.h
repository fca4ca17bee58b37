// Dataflow between the nodes of functions that call each other, through blocks, calls, frames and
// lists. batch_partition.cpp partitions blocks by it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// By vertex, those that it leads to directly. May hold one twice.
using Edges = std::vector<std::vector<uint32_t>>;

/// By vertex, the number of its component: all that lead to each other have the same one, and what
/// leads to another component has a smaller one.
std::vector<uint32_t> components(const Edges& edges);

class Flow {
 public:
  /// `is_work`: the nodes that are to be told apart, and that count in a cycle.
  using IsWork = std::function<bool(const graph::Node&)>;
  Flow(std::span<graph::Node* const> functions, const IsWork& is_work);

  /// What a node may be computed together with: nodes of one family need each other in the course
  /// of the recursion, or stand between the same of those families.
  struct Family {
    uint32_t cycle = 0;  ///< 0: it leads to itself on no way
    uint64_t before = 0, behind = 0;
    friend auto operator<=>(const Family&, const Family&) = default;
  };
  Family family(const graph::Node& node) const;

  /// For each unit a rank: what leads to another unit has a smaller one, or the same if that leads
  /// back.
  std::vector<uint32_t> ranks(const std::vector<std::vector<graph::Node*>>& units) const;

 private:
  void add(const graph::Block& block, std::span<graph::Node* const> functions,
           const IsWork& is_work);
  void add_call(const graph::Node& call, const graph::Node& function);
  void add_loop(const graph::Node& loop);
  void find_families();
  std::vector<uint32_t> depths(const Edges& edges,
                               const std::vector<std::vector<graph::Node*>>& units) const;
  uint32_t vertex(const void* node_or_value);
  void lead(const void* from, const void* to);

  std::unordered_map<const void*, uint32_t> vertices_;  ///< of nodes and of values
  std::vector<bool> is_work_;                           ///< by vertex
  Edges edges_;
  std::vector<Family> families_;
};

}  // namespace janus::passes
