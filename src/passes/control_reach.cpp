// See control_reach.h.
#include "passes/control_reach.h"

#include <algorithm>
#include <set>

#include "ops/list.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Value;

namespace {

bool is_inside(const Value& value, const Block& block) {
  return value.definition != nullptr ? value.definition->parent == &block : value.owner == &block;
}

/// What a block hands a gradient on to.
struct Sources {
  Reached outer;                ///< values from outside
  std::set<size_t> parameters;  ///< of the block
};

Sources sources_of(const Block& block, std::span<Value* const> results, Paths paths) {
  Sources sources;
  for (Value* value : reached_from(results, paths, &block)) {
    if (!is_inside(*value, block))
      sources.outer.insert(value);
    else if (value->definition == nullptr)
      sources.parameters.insert(value->index);
  }
  return sources;
}

std::vector<Value*> through_branch(const Node& node, size_t index, Paths paths) {
  std::vector<Reached> sides;
  for (const auto& block : node.blocks)
    sides.push_back(
        sources_of(*block, std::span<Value* const>(&block->results[index], 1), paths).outer);
  std::vector<Value*> result;
  for (Value* value : sides[0])
    if (paths == Paths::any || sides[1].contains(value)) result.push_back(value);
  if (paths == Paths::any)
    for (Value* value : sides[1])
      if (!sides[0].contains(value)) result.push_back(value);
  return result;
}

/// The rounds of a loop, from the last one back.
class Rounds {
 public:
  Rounds(const Node& loop, Paths paths) : loop_(loop), paths_(paths) {}

  std::vector<Value*> reached(size_t index) {
    return paths_ == Paths::any ? reached_in_any(index) : reached_for_certain(index);
  }

 private:
  /// One round back: from carried values to those before, and to values from outside.
  std::set<size_t> step(const std::set<size_t>& carried) {
    const Block& body = *loop_.blocks[1];
    std::vector<Value*> results;
    for (const size_t k : carried) results.push_back(body.results[k]);
    Sources sources = sources_of(body, results, paths_);
    outer_.merge(sources.outer);
    return sources.parameters;
  }

  std::vector<Value*> with_starts(const std::set<size_t>& carried) {
    for (const size_t k : carried) outer_.insert(loop_.inputs[k]);
    return {outer_.begin(), outer_.end()};
  }

  std::vector<Value*> reached_in_any(size_t index) {
    std::set<size_t> carried = {index};
    for (size_t before = 0; before != carried.size();) {
      before = carried.size();
      carried.merge(step(carried));
    }
    return with_starts(carried);
  }

  /// {minimum=n} promises that there are at least n rounds. However many there are beyond that, the
  /// sets of carried values that they lead to repeat at some time.
  std::vector<Value*> reached_for_certain(size_t index) {
    constexpr int64_t most_rounds = 64;
    const int64_t least = std::min(loop_.attributes.get_or<int64_t>("minimum", 0), most_rounds);
    std::set<size_t> carried = {index};
    for (int64_t round = 0; round < least; ++round) carried = step(carried);
    const Reached certain = outer_;
    std::set<size_t> in_all = carried;
    std::set<std::set<size_t>> seen;
    while (seen.insert(carried).second && seen.size() < static_cast<size_t>(most_rounds)) {
      std::set<size_t> both;
      std::ranges::set_intersection(in_all, carried, std::inserter(both, both.end()));
      in_all = std::move(both);
      carried = step(carried);
    }
    if (!seen.contains(carried)) in_all.clear();
    outer_ = certain;
    return with_starts(in_all);
  }

  const Node& loop_;
  const Paths paths_;
  Reached outer_;
};

}  // namespace

std::vector<Value*> reached_through(const Value& output, Paths paths) {
  const Node& node = *output.definition;
  return node.op == &op::if_ ? through_branch(node, output.index, paths)
                             : Rounds(node, paths).reached(output.index);
}

}  // namespace janus::passes
