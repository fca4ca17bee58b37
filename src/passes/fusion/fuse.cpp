// See fuse.h.
#include "passes/fusion/fuse.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/options.h"
#include "graph/cost.h"
#include "graph/rewriter.h"
#include "ops/index_space.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "ops/read.h"
#include "passes/fusion/grouping.h"
#include "passes/fusion/reads_apart.h"
#include "passes/ordering/order.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Value;

using Group = std::vector<const Node*>;

bool is_constant(const Value* value) {
  return value->definition != nullptr && value->definition->op == &op::constant;
}

bool is_repeated(const Node& node) {
  const Node* around = node.parent->parent;
  while (around != nullptr && around->op != &op::while_ && around->op != &op::function)
    around = around->parent->parent;
  return around != nullptr;
}

/// A lone node gains nothing in a kernel that ATen computes as well, but that the call is cheaper:
/// worth the time of compiling it where it is called again and again, or where the call is all that
/// it costs. ATen joins and pads as fast, and where a large tensor is only reduced in one go behind
/// that, gains and losses are about the same.
bool is_worth_it(const Group& group) {
  const Node& first = *group.front();
  const Node& last = *group.back();
  if (group.size() == 2 && ops::is_reindexing(first) && !ops::looks_up(first) &&
      ops::reduction_of(last) && !has_few_elements(last) && !first.op->aten.empty())
    return false;
  if (group.size() > 1 || first.op->aten.empty()) return true;
  if (ops::is_reindexing(first)) return reads_faster(first);
  if (first.op->cost == graph::Cost::slow_alone) return true;
  return has_few_elements(first) || (is_repeated(first) && !ops::reduction_of(first));
}

/// Which groups a graph has, after gather() made the members of each stand side by side.
class Gathered {
 public:
  explicit Gathered(graph::Block& body, const CanFuse& can_fuse) { gather(body, can_fuse); }

  /// The group whose last member this is; null if there is none.
  const Group* ending_at(const Node& node) const {
    const Group* group = group_of(node);
    return group != nullptr && group->back() == &node ? group : nullptr;
  }
  bool contains(const Node& node) const { return group_of(node) != nullptr; }
  /// Null if it is in none.
  const Group* group_of(const Node& node) const {
    const auto found = group_of_.find(&node);
    return found == group_of_.end() ? nullptr : found->second;
  }
  bool same_group(const Node& a, const Node& b) const {
    return contains(a) && group_of(a) == group_of(b);
  }

 private:
  void gather(graph::Block& block, const CanFuse& can_fuse) {
    for (const Node* node : block.nodes)
      for (const auto& nested : node->blocks)
        if (node->op != &op::fused) gather(*nested, can_fuse);
    std::vector<uint32_t> unit_of(block.nodes.size());
    for (uint32_t i = 0; i < unit_of.size(); ++i) unit_of[i] = i;
    for (const std::vector<uint32_t>& positions : find_groups(block, can_fuse)) {
      for (const uint32_t i : positions) unit_of[i] = positions.back();
      Group group;
      for (const uint32_t i : positions) group.push_back(block.nodes[i]);
      if (!is_worth_it(group)) continue;
      groups_.push_back(std::make_unique<Group>(std::move(group)));
      for (const Node* member : *groups_.back()) group_of_.emplace(member, groups_.back().get());
    }
    move_together(block, unit_of);
  }

  /// Orders the block so that nodes of one unit are neighbours. A unit is named by the position of
  /// its last node.
  static void move_together(graph::Block& block, const std::vector<uint32_t>& unit_of) {
    const Predecessors before = predecessors(block);
    Predecessors units_before(before.size());
    std::vector<std::vector<Node*>> members(before.size());
    std::vector<uint64_t> priority(before.size());
    for (uint32_t i = 0; i < before.size(); ++i) {
      priority[i] = i;
      members[unit_of[i]].push_back(block.nodes[i]);
      for (const uint32_t other : before[i])
        if (unit_of[other] != unit_of[i]) units_before[unit_of[i]].push_back(unit_of[other]);
    }
    block.nodes.clear();
    for (const uint32_t unit : sort_topologically(units_before, priority))
      block.nodes.insert(block.nodes.end(), members[unit].begin(), members[unit].end());
  }

  std::vector<std::unique_ptr<Group>> groups_;
  std::unordered_map<const Node*, const Group*> group_of_;
};

/// As fast as the elements come from memory.
bool is_cheap(const Node& node) {
  return node.op->cost == graph::Cost::cheap && ops::has_scalar_program(node);
}

/// The values that each kernel makes anew of what lies in memory anyway, where that moves fewer
/// bytes than to store them and read them again: half precision in float32, what is cheap to
/// compute of a tensor that the kernels read as well, or that takes no more to read.
class ComputedAgain {
 public:
  ComputedAgain(const graph::Graph& graph, const Gathered& gathered)
      : gathered_(gathered), uses_(graph.value_count()), sources_(graph.value_count()) {
    for (const Value* result : graph.results()) uses_[result->id].is_needed_stored = true;
    graph::for_each_node(graph.body(), [&](const Node& node) { note(node); });
    graph::for_each_node(graph.body(), [&](const Node& node) {
      if (!gathered.contains(node) || !is_cheap(node)) return;
      const Value* source = source_of(node);
      if (source != nullptr && saves_bytes(node, *source)) sources_[node.output()->id] = source;
    });
  }

  /// What the value is computed of, a tensor in memory; null for those that are not computed again.
  const Value* source(const Value& value) const { return sources_[value.id]; }

 private:
  struct Uses {
    std::set<const Group*> groups;
    bool is_needed_stored = false;   ///< by what is in no group
    bool is_read_elsewhere = false;  ///< at other places, so from memory
  };

  void note(const Node& node) {
    const Group* group = gathered_.group_of(node);
    for (const Value* input : node.inputs) {
      Uses& uses = uses_[input->id];
      if (group == nullptr)
        uses.is_needed_stored = true;
      else
        uses.groups.insert(group);
      uses.is_read_elsewhere |= ops::is_reindexing(node);
    }
    for (const auto& block : node.blocks)
      for (const Value* result : block->results) uses_[result->id].is_needed_stored = true;
  }

  /// The tensor of as many elements that is all it needs beside constants; null if there is more.
  static const Value* source_of(const Node& node) {
    const Value* source = nullptr;
    for (const Value* input : node.inputs) {
      if (is_constant(input)) continue;
      const bool is_first = std::exchange(source, input) == nullptr;
      if (!is_first || !input->type.is_tensor()) return nullptr;
      if (input->type.shape != node.output()->type.shape) return nullptr;
    }
    return source;
  }

  bool is_in_memory(const Value& value) const {
    const Node* node = value.definition;
    const Group* own = node == nullptr ? nullptr : gathered_.group_of(*node);
    if (own == nullptr) return true;
    const Uses& uses = uses_[value.id];
    const bool is_used_outside = uses.groups.size() > uses.groups.count(own);
    return sources_[value.id] == nullptr && (uses.is_needed_stored || is_used_outside);
  }

  bool saves_bytes(const Node& node, const Value& source) const {
    const Uses& uses = uses_[node.output()->id];
    if (uses.is_read_elsewhere || !is_in_memory(source)) return false;
    const int64_t bytes = graph::typical_bytes(node.output()->type);
    const Group* own = gathered_.group_of(node);
    int64_t again = 0, stored = 0;
    for (const Group* group : uses.groups) {
      if (group == own) continue;
      stored += bytes;
      if (!uses_[source.id].groups.contains(group)) again += graph::typical_bytes(source.type);
    }
    if (stored > 0 && !uses.is_needed_stored) stored += bytes;
    return again < stored &&
           std::ranges::all_of(
               uses.groups,
               [&](const Group* group) { return group == own || fits_in(node, *group); });
  }

  /// Whether a kernel of the group still has one space.
  static bool fits_in(const Node& node, const Group& group) {
    Group together{&node};
    together.insert(together.end(), group.begin(), group.end());
    return ops::IndexSpace::of(together).has_value();
  }

  const Gathered& gathered_;
  std::vector<Uses> uses_;  // by Value::id, both
  std::vector<const Value*> sources_;
};

/// The values of a graph that are used by other nodes than members of the group that defines them.
class UsedOutside {
 public:
  UsedOutside(const graph::Graph& graph, const Gathered& gathered, const ComputedAgain& again)
      : used_(graph.value_count()) {
    use(graph.results());
    graph::for_each_node(graph.body(), [&](const Node& node) {
      const bool is_member = gathered.contains(node);
      for (const Value* input : node.inputs) {
        const Value* source = again.source(*input);
        if (is_member && !inside_one_group(gathered, *input, node) && source != nullptr)
          input = source;
        if (!is_member || !inside_one_group(gathered, *input, node)) used_[input->id] = true;
      }
      for (const auto& block : node.blocks) use(block->results);
    });
  }
  bool contains(const Value* value) const { return used_[value->id]; }

 private:
  void use(std::span<Value* const> values) {
    for (const Value* value : values) used_[value->id] = true;
  }
  static bool inside_one_group(const Gathered& gathered, const Value& value, const Node& user) {
    return value.definition != nullptr && gathered.same_group(*value.definition, user);
  }

  std::vector<bool> used_;  // by Value::id
};

/// Builds one `fused` node.
class Kernel {
 public:
  Kernel(graph::Rewriter& rewriter, const Group& group, const UsedOutside& used_outside,
         const ComputedAgain& again)
      : rewriter_(rewriter), group_(group), again_(again), members_(group.begin(), group.end()) {
    for (const Node* member : group)
      for (Value* output : member->outputs)
        if (used_outside.contains(output)) results_.push_back(output);
  }

  void build() {
    if (results_.empty()) return;  // others compute them again
    collect_operands();
    log_decision();
    std::vector<graph::Type> types;
    for (const Value* result : results_) types.push_back(result->type);
    graph::Builder& outer = rewriter_.builder();
    outer.set_span(place());
    Node* fused = outer.append_unchecked(op::fused, rewriter_[operands_], {}, std::move(types));
    fill_block(*fused);
    rewriter_.builder().set_span(group_.back()->span);
    for (size_t i = 0; i < results_.size(); ++i) rewriter_.set(results_[i], fused->outputs[i]);
  }

 private:
  /// Where the program says it: what may end the run, else the last.
  const graph::SourceSpan& place() const {
    const auto may_end =
        std::ranges::find_if(group_, [](const Node* member) { return ops::looks_up(*member); });
    return may_end == group_.end() ? group_.back()->span : (*may_end)->span;
  }

  /// Says what is computed together, and how many bytes need not cross memory for it.
  void log_decision() const {
    if (!log_enabled("pass", 2)) return;
    int64_t apart = 0, together = 0;
    std::string names;
    for (const Node* member : group_) {
      const std::unordered_set<const Value*> read(member->inputs.begin(), member->inputs.end());
      for (const Value* operand : read) apart += graph::typical_bytes(operand->type);
      for (const Value* output : member->outputs) apart += graph::typical_bytes(output->type);
      names += cat(names.empty() ? "" : " ", member->op->name);
    }
    for (const Value* operand : operands_) together += graph::typical_bytes(operand->type);
    for (const Value* result : results_) together += graph::typical_bytes(result->type);
    log("pass", cat("fused ", names, ": ", together, " bytes instead of ", apart), 2);
  }

  void collect_operands() {
    std::unordered_set<const Value*> seen;
    const auto collect = [&](Value* operand) {
      if (!seen.insert(operand).second || members_.contains(operand->definition)) return false;
      const bool is_computed_again = again_.source(*operand) != nullptr;
      if (!is_computed_again) (is_constant(operand) ? constants_ : operands_).push_back(operand);
      return is_computed_again;
    };
    for (const Node* member : group_) {
      for (Value* operand : member->inputs) {
        if (!collect(operand)) continue;
        computed_again_.push_back(operand);
        for (Value* source : operand->definition->inputs) collect(source);
      }
    }
  }

  void fill_block(Node& fused) {
    graph::Block& block = fused.add_block();
    const std::vector<Value*> outer_operands = rewriter_[operands_];
    const std::vector<Value*> outer_constants = rewriter_[constants_];
    std::vector<Value*> outer_again;  // null: no kernel stores it
    for (const Value* value : computed_again_)
      outer_again.push_back(rewriter_.has(value) ? rewriter_[value] : nullptr);
    const graph::Builder outer = rewriter_.builder();

    rewriter_.builder() = graph::Builder(rewriter_.graph(), block);
    for (const Value* operand : operands_)
      rewriter_.set(
          operand, rewriter_.graph().new_parameter(block, rewriter_[operand]->type, operand->name));
    for (const Value* constant : constants_) rewriter_.copy(*constant->definition);
    for (const Value* value : computed_again_) rewriter_.copy(*value->definition);
    for (const Node* member : group_) rewriter_.copy(*member);
    for (const Value* result : results_) block.results.push_back(rewriter_[result]);

    rewriter_.builder() = outer;
    for (size_t i = 0; i < operands_.size(); ++i) rewriter_.set(operands_[i], outer_operands[i]);
    for (size_t i = 0; i < constants_.size(); ++i) rewriter_.set(constants_[i], outer_constants[i]);
    for (size_t i = 0; i < computed_again_.size(); ++i)
      if (outer_again[i] != nullptr) rewriter_.set(computed_again_[i], outer_again[i]);
  }

  graph::Rewriter& rewriter_;
  const Group& group_;
  const ComputedAgain& again_;
  const std::unordered_set<const Node*> members_;
  std::vector<Value*> operands_, constants_, computed_again_, results_;
};

}  // namespace

bool can_fuse_by_traits(const Node& node) {
  const auto computable = [](const Value* value) {
    return !value->type.is_tensor() || !graph::is_complex(value->type.dtype);
  };
  const bool elementwise = node.op->is(graph::Trait::elementwise) && ops::has_scalar_program(node);
  if (!elementwise) {
    const Node* nodes[] = {&node};
    if (!ops::reduction_of(node) && !ops::is_reindexing(node)) return false;
    if (!ops::IndexSpace::of(nodes)) return false;
  }
  return node.op->is(graph::Trait::pure) && std::ranges::all_of(node.inputs, computable) &&
         std::ranges::all_of(node.outputs, computable);
}

graph::Graph fuse(const graph::Graph& graph, const CanFuse& can_fuse) {
  graph::Graph ordered = with_reads_apart(graph, can_fuse);
  const Gathered gathered(ordered.body(), can_fuse);
  const ComputedAgain again(ordered, gathered);
  const UsedOutside used_outside(ordered, gathered, again);
  graph::Rewriter rewriter(ordered);
  rewriter.run([&](const Node& node) {
    if (is_other_name(node)) {
      rewriter.replace(node, {rewriter[node.inputs[0]]});
      return true;
    }
    if (!gathered.contains(node)) return false;
    if (const Group* group = gathered.ending_at(node))
      Kernel(rewriter, *group, used_outside, again).build();
    return true;
  });
  return rewriter.finish();
}

graph::Graph wrap(const graph::Graph& graph, const CanFuse& can_fuse) {
  return fuse(graph, [&](const Node& node) { return node.op->aten.empty() && can_fuse(node); });
}

}  // namespace janus::passes
