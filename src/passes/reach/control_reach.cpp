// See control_reach.h.
#include "passes/reach/control_reach.h"

#include <algorithm>
#include <set>

#include "base/policy.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/reach/list_reach.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Value;

namespace {

bool is_inside(const Value& value, const Block& block) {
  return value.definition != nullptr ? value.definition->parent == &block : value.owner == &block;
}

BlockSources sources_of(const Block& block, std::span<Value* const> results, Paths paths,
                        const Search& search, const FunctionReach* functions) {
  BlockSources sources;
  for (Value* value : search.reached_from(results, paths, &block, functions)) {
    if (!is_inside(*value, block))
      sources.outer.insert(value);
    else if (value->definition == nullptr)
      sources.parameters.insert(value->index);
  }
  return sources;
}

std::vector<Value*> through_branch(const Node& node, size_t index, Paths paths,
                                   const Search& search, const FunctionReach* functions) {
  std::vector<Reached> sides;
  for (const auto& block : node.blocks)
    sides.push_back(sources_of(*block, std::span<Value* const>(&block->results[index], 1), paths,
                               search, functions)
                        .outer);
  std::vector<Value*> result;
  for (Value* value : sides[0])
    if (paths == Paths::any || sides[1].contains(value)) result.push_back(value);
  if (paths == Paths::any)
    for (Value* value : sides[1])
      if (!sides[0].contains(value)) result.push_back(value);
  return result;
}

/// The iterations of a loop, from the last one back.
class Iterations {
 public:
  Iterations(const Node& loop, Paths paths, const Search& search, const FunctionReach* functions)
      : loop_(loop), paths_(paths), search_(search), functions_(functions) {}

  std::vector<Value*> reached(size_t index) {
    return paths_ == Paths::any ? reached_in_any(index) : reached_for_certain(index);
  }

 private:
  /// One iteration back: from carried values to those before, and to values from outside.
  std::set<size_t> step(const std::set<size_t>& carried) {
    const Block& body = *loop_.blocks[1];
    std::vector<Value*> results;
    for (const size_t k : carried) results.push_back(body.results[k]);
    BlockSources sources = sources_of(body, results, paths_, search_, functions_);
    outer_.merge(sources.outer);
    for (const size_t list : taken_in_part_) sources.parameters.erase(list);
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

  /// {minimum=n} promises at least n iterations. Beyond n, the sets of carried values that are
  /// reached repeat at some time. A list whose elements the iterations take in turn is reached as a
  /// whole if the carried value goes through each iteration and uses its element.
  std::vector<Value*> reached_for_certain(size_t index) {
    const std::set<size_t> lists = lists_taken(index);
    const int64_t least =
        std::min(loop_.attributes.get_or<int64_t>("minimum", 0), policy::kMostIterationsFollowed);
    std::set<size_t> carried = {index};
    for (int64_t iteration = 0; iteration < least; ++iteration) carried = step(carried);
    const Reached certain = outer_;
    std::set<size_t> in_all = carried;
    std::set<std::set<size_t>> seen;
    while (seen.insert(carried).second &&
           seen.size() < static_cast<size_t>(policy::kMostIterationsFollowed)) {
      std::set<size_t> both;
      std::ranges::set_intersection(in_all, carried, std::inserter(both, both.end()));
      in_all = std::move(both);
      carried = step(carried);
    }
    if (!seen.contains(carried)) in_all.clear();
    outer_ = certain;
    if (paths_ == Paths::certain)
      for (const size_t list : lists)
        if (least > 0 || !may_have_lost(*loop_.inputs[list])) in_all.insert(list);
    return with_starts(in_all);
  }

  /// Whether it is a part of another list, which may have elements although this one has none.
  static bool may_have_lost(const Value& list) {
    const Value* from = &list;
    while (from->definition != nullptr && from->definition->op == &op::list_reverse)
      from = from->definition->inputs[0];
    return is_part_of_list(*from);
  }

  /// The lists of which the carried value depends on one element in each iteration. Of other lists
  /// some elements may be lost on the way.
  std::set<size_t> lists_taken(size_t index) {
    std::set<size_t> lists;
    const Block& body = *loop_.blocks[1];
    const Reached reached =
        search_.reached_from({&body.results[index], 1}, paths_, &body, functions_);
    for (const Node* node : body.nodes) {
      if (!is_taken_in_turn(*node)) continue;
      const bool is_whole =
          reached.contains(body.parameters[index]) && reached.contains(node->outputs[1]);
      (is_whole ? lists : taken_in_part_).insert(node->inputs[0]->index);
    }
    return lists;
  }

  const Node& loop_;
  const Paths paths_;
  const Search& search_;
  const FunctionReach* functions_;
  std::set<size_t> taken_in_part_;
  Reached outer_;
};

/// Until nothing changes.
void find(FunctionReach& reach, const std::vector<Node*>& functions, Paths paths,
          const Search& search) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Node* function : functions) {
      const Block& block = *function->blocks.front();
      for (size_t i = 0; i < block.results.size(); ++i) {
        const std::span<Value* const> result(&block.results[i], 1);
        if (reach.set(*function, i, sources_of(block, result, paths, search, &reach)))
          changed = true;
      }
    }
  }
}

/// Of all functions that the call runs.
FunctionReach reach_of(const Node& call, Paths paths, const Search& search) {
  const std::vector<Node*> functions = graph::functions_run_by(call);
  FunctionReach reach(functions);
  find(reach, functions, Paths::any, search);
  if (paths != Paths::any) find(reach, functions, paths, search);
  return reach;
}

}  // namespace

std::vector<Value*> reached_through(const Value& output, Paths paths, const Search& search,
                                    const FunctionReach* functions) {
  const Node& node = *output.definition;
  if (node.op == &op::if_) return through_branch(node, output.index, paths, search, functions);
  if (node.op == &op::while_)
    return Iterations(node, paths, search, functions).reached(output.index);
  if (functions != nullptr && functions->knows(node)) return functions->through(node, output.index);
  return reach_of(node, paths, search).through(node, output.index);
}

}  // namespace janus::passes
