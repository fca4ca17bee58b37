#include "frontend/values/list_lengths.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "graph/functions.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Node;
using graph::Value;

namespace {

/// Follows both lists to where they come from, step by step. What a block gives is compared under
/// the assumption that what it is given is of one length, which then has to be so: at each call of
/// a function, in front of a loop and at the end of its iterations.
class Comparison {
 public:
  bool run(const Value* a, const Value* b) {
    if (a == b || !compared_.emplace(a, b).second) return true;
    if (a->definition == nullptr || b->definition == nullptr)
      return a->definition == b->definition && are_parameters(a, b);
    const Node &one = *a->definition, &other = *b->definition;
    if (one.op != other.op) return false;
    if (one.op == &op::list_new) return true;
    if (one.op == &op::list_push) return run(one.inputs[0], other.inputs[0]);
    if (one.op == &op::list_pop)
      return a->index == 0 && b->index == 0 && run(one.inputs[0], other.inputs[0]);
    if (&one != &other) return false;
    if (one.op == &op::if_)
      return run(one.blocks[0]->results[a->index], one.blocks[0]->results[b->index]) &&
             run(one.blocks[1]->results[a->index], one.blocks[1]->results[b->index]);
    if (one.op == &op::while_) return through_loop(one, a->index, b->index);
    return one.op == &op::call && through_call(one, a->index, b->index);
  }

 private:
  using Places = std::pair<uint32_t, uint32_t>;  ///< among parameters

  /// Of one block: of a function, which may assume that they are as long, if each call makes it so,
  /// or of a loop.
  bool are_parameters(const Value* a, const Value* b) {
    const Node* of = a->owner == nullptr || a->owner != b->owner ? nullptr : a->owner->parent;
    if (of == nullptr) return false;
    if (of->op == &op::while_) return through_loop(*of, a->index, b->index);
    if (of->op != &op::function) return false;
    const Places places(a->index, b->index);
    needed_.emplace(of, places);
    const std::vector<const Node*> calls = calls_;
    return std::ranges::all_of(calls, [&](const Node* call) {
      return graph::callee(*call) != of || are_given(*call, places);
    });
  }

  bool are_given(const Node& node, const Places& places) {
    return run(node.inputs[places.first], node.inputs[places.second]);
  }

  bool through_loop(const Node& loop, uint32_t first, uint32_t second) {
    const graph::Block& body = *loop.blocks.back();
    return are_given(loop, {first, second}) && run(body.results[first], body.results[second]);
  }

  bool through_call(const Node& call, uint32_t first, uint32_t second) {
    const Node* function = graph::callee(call);
    if (function == nullptr) return false;
    calls_.push_back(&call);
    const auto needed = needed_;
    for (const auto& [of, places] : needed)
      if (of == function && !are_given(call, places)) return false;
    const graph::Block& body = *function->blocks.front();
    return run(body.results[first], body.results[second]);
  }

  std::set<std::pair<const Value*, const Value*>> compared_;  ///< by induction on the run
  std::vector<const Node*> calls_;
  std::set<std::pair<const Node*, Places>> needed_;  ///< of functions
};

}  // namespace

bool have_one_length(const Value* a, const Value* b) { return Comparison().run(a, b); }

}  // namespace janus::frontend
