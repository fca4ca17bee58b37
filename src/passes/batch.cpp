// Lets invocations of a function that calls itself, and rounds of loops that do not need each
// other, be computed together.
//
// Does:       gathers the operators on tensors of each block of such a function or loop into `rows`
//             nodes, which the executor puts off and computes for many invocations at once. Those
//             that only add something to sums (sums.h), and what only they need, have nodes of
//             their own: they may wait until all invocations are over.
// Requires:   no composite operators, no `gradient` nodes.
// Guarantees: what decides which calls and rounds there are needs no result of a `rows` node.
// Must not:   touch a function whose control depends on the contents of tensors, or that has an
//             operator on tensors without a form for many rows (row_forms.h); nor loops whose
//             rounds have nothing in common with others (parallel_loops.h).
#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "graph/copier.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "ops/python.h"
#include "ops/rows.h"
#include "passes/copied.h"
#include "passes/flow.h"
#include "passes/order.h"
#include "passes/parallel_loops.h"
#include "passes/passes.h"
#include "passes/reachability.h"
#include "passes/renew.h"
#include "passes/row_forms.h"
#include "passes/sink.h"
#include "passes/sums.h"
#include "passes/together.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Builder;
using graph::Dim;
using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::Value;

Block& block_of(const Node& function) { return *function.blocks.front(); }

// ---- which values are what --------------------------------------------------------------------

/// Values that are the same in all invocations: of the graph's body, and what is computed of such
/// alone.
class Common {
 public:
  /// `once`: those of `functions` that run once.
  Common(const Block& body, std::vector<Node*> functions, const std::vector<Node*>& once)
      : body_(body), functions_(std::move(functions)) {
    for (const Node* function : once) once_.insert(&block_of(*function));
    for (const Node* function : functions_)
      graph::for_each_node(block_of(*function), [&](const Node& node) {
        for (const Value* input : node.inputs) uses_[input] += once_.contains(node.parent) ? 1 : 2;
      });
  }

  /// Where it is computed in a function, it costs little to compute it again.
  bool contains(const Value* value) {
    const auto [known, is_new] = known_.try_emplace(value, false);
    if (!is_new) return known->second;
    const bool common = is_common(*value);
    return known_[value] = common;
  }

  /// Whether it is there at once, but is not the same for all: what stands where a function runs
  /// once and has it may be like what has another (the answers of several losses); or it is
  /// computed there, and is not to be computed again.
  bool is_there(const Value* value) {
    if (is_of_one(*value)) return true;
    const Node* node = value->definition;
    if (node == nullptr || contains(value)) return false;
    const bool runs_once = once_.contains(node->parent) && computes(*node);
    return (runs_once || is_part(*node)) &&
           std::ranges::all_of(node->inputs, [&](const Value* input) {
             return contains(input) || is_there(input) || !input->type.is_tensor();
           });
  }

  /// Whether it is computed in a function, so that it takes a node to have it elsewhere as well.
  bool is_inside(const Value* value) const {
    return value->definition != nullptr ? value->definition->parent != &body_
                                        : value->owner != &body_;
  }

 private:
  static bool computes(const Node& node) {
    return node.op->is(Trait::pure) && !node.op->is(Trait::random) &&
           !node.op->is(Trait::reads_heap) && node.blocks.empty();
  }

  /// A tensor of the body that one node has, which runs once.
  bool is_of_one(const Value& value) const {
    const auto uses = uses_.find(&value);
    return value.type.is_tensor() && !is_inside(&value) && uses != uses_.end() && uses->second == 1;
  }

  /// A part of which programs take rows in their turn: it is a view at once, as rows of rows have
  /// no form for many.
  static bool is_part(const Node& node) {
    return node.op == &op::row && node.output()->type.rank() > 1;
  }

  static bool costs_little(const Node& node) {
    return node.op->is(Trait::view) || std::ranges::none_of(node.inputs, [](const Value* input) {
             return input->type.is_tensor();
           });
  }

  /// What `functions` gave to the body differs from the body's other values: they are called in
  /// parts (together.h), which take from each other what an invocation takes from others.
  bool is_common(const Value& value) {
    const Node* node = value.definition;
    if (is_of_one(value)) return false;
    if (node == nullptr) return !is_inside(&value);
    if (!is_inside(&value)) {
      if (node->op == &op::call) return !std::ranges::count(functions_, graph::callee(*node));
      return std::ranges::all_of(operands(*node),
                                 [&](const Value* input) { return contains(input); });
    }
    return computes(*node) && (!once_.contains(node->parent) || costs_little(*node)) &&
           std::ranges::all_of(node->inputs, [&](const Value* input) { return contains(input); });
  }

  const Block& body_;
  const std::vector<Node*> functions_;
  std::unordered_set<const Block*> once_;
  std::unordered_map<const Value*, size_t> uses_;  ///< more than one where a node runs many times
  std::unordered_map<const Value*, bool> known_;
};

/// Which operands of a node differ from invocation to invocation.
std::vector<bool> differing(const Node& node, Common& common) {
  std::vector<bool> result;
  for (const Value* input : node.inputs) result.push_back(!common.contains(input));
  return result;
}

/// Tries in a graph of its own whether there is a form of the node for many rows.
template <class Append>
bool can_append(const Node& node, const std::vector<bool>& stacked, const Dim& rows,
                Append&& append) {
  Graph scratch("form");
  Builder builder(scratch);
  std::vector<Value*> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const graph::Type& type = node.inputs[i]->type;
    if (stacked[i] && !type.is_tensor() && !type.is_number()) return false;
    inputs.push_back(builder.input(stacked[i] ? rows_of(type, rows) : type, ""));
  }
  try {
    return append(builder, inputs).has_value();
  } catch (const graph::TypeError&) {
    return false;
  }
}

/// Whether it needs no tensors but such as are there without any invocation.
bool can_run_at_once(const Node& node, Common& common) {
  if (!node.outputs.empty() && common.is_there(node.output())) return true;
  const auto is_there = [&](const Value* input) { return common.is_there(input); };
  return std::ranges::any_of(node.inputs, is_there) &&
         std::ranges::all_of(node.inputs, [&](const Value* input) {
           return !input->type.is_tensor() || common.contains(input) || is_there(input);
         });
}

bool has_rows_form(const Node& node, Common& common, const Dim& rows) {
  const bool computes = node.op->is(Trait::pure) || node.op == &op::count_classes;
  if (!computes || node.op->is(Trait::random) || !node.blocks.empty()) return false;
  const std::vector<bool> stacked = differing(node, common);
  const bool tensors =
      !node.outputs.empty() && std::ranges::all_of(node.outputs, [](const Value* output) {
        return output->type.is_tensor();
      });
  if (!tensors || std::ranges::find(stacked, true) == stacked.end()) return false;
  if (can_run_at_once(node, common)) return false;
  return can_append(node, stacked, rows, [&](Builder& builder, const auto& inputs) {
    return append_for_rows(builder, node, inputs, stacked, rows);
  });
}

std::vector<bool> added_operands(const Node& node, Common& common) {
  std::vector<bool> stacked = differing(node, common);
  stacked[*added_to(node)] = false;
  return stacked;
}

bool can_add_rows(const Node& node, Common& common, const Dim& rows) {
  const std::vector<bool> stacked = added_operands(node, common);
  return can_append(node, stacked, rows, [&](Builder& builder, const auto& inputs) {
    return append_sum_of_rows(builder, node, inputs, stacked);
  });
}

/// Functions whose invocations, or the rounds of whose loops, are computed together, and how their
/// values behave.
struct Recursion {
  std::vector<Node*> functions;
  std::vector<Node*> together;  ///< those of them that run once
  Common common;
  Sums sums;
  Dim rows;
  std::unordered_set<const Node*> with_form;  ///< that can be computed for many rows

  Recursion(std::vector<Node*> all, std::vector<Node*> once, const Block& body, const Dim& symbol)
      : functions(all),
        together(std::move(once)),
        common(body, functions, together),
        sums(std::move(all), together,
             [&](const Node& node) { return can_add_rows(node, common, symbol); }),
        rows(symbol) {
    const std::set<std::string> varying = graph::symbols_given_in(body);
    for (const Node* function : functions)
      graph::for_each_node(block_of(*function), [&](const Node& node) {
        if (is_segmented(*node.parent) && is_fixed(node, varying) && !sums.adds(node) &&
            has_rows_form(node, common, rows))
          with_form.insert(&node);
      });
  }

  /// What is known of the layout of a row is known for all runs.
  static bool is_fixed(const Node& node, const std::set<std::string>& varying) {
    const auto varies = [&](const Value* value) {
      return std::ranges::any_of(value->type.shape, [&](const Dim& dim) {
        return std::ranges::any_of(dim.symbols(),
                                   [&](const std::string& name) { return varying.contains(name); });
      });
    };
    return std::ranges::none_of(node.inputs, varies) && std::ranges::none_of(node.outputs, varies);
  }

  /// Tests of loops run as they are.
  static bool is_segmented(const Block& block) {
    const Node* around = block.parent;
    if (around == nullptr || around->op == &op::function) return true;
    const bool nested =
        around->op == &op::if_ || (around->op == &op::while_ && &block == around->blocks[1].get());
    return nested && is_segmented(*around->parent);
  }

  bool is_put_off(const Node& node) const { return with_form.contains(&node) || sums.adds(node); }

  /// Whether in what runs many times nothing but what is put off looks into tensors. (Who looks
  /// into one that is put off has everything computed that waits.)
  bool can_put_off() {
    bool any = false, all = true;
    for (const Node* function : functions)
      graph::for_each_node(block_of(*function), [&](const Node& node) {
        any |= is_put_off(node);
        const bool once = std::ranges::any_of(
            together, [&](const Node* each) { return node.parent == &block_of(*each); });
        all = all && !ops::reads_clock(node) &&
              (once || is_put_off(node) || hands_on(node) || !looks_into_tensors(node));
      });
    return any && all;
  }

 private:
  static bool hands_on(const Node& node) {
    return node.op == &op::call || node.op == &op::if_ || node.op == &op::while_ ||
           node.op == &op::frame_pack || node.op == &op::frame_unpack ||
           node.op == &op::list_push || node.op == &op::list_pop;
  }

  /// Lists may hold tensors; a tensor that was just read of the heap is there.
  bool looks_into_tensors(const Node& node) {
    return std::ranges::any_of(node.inputs, [&](const Value* input) {
      const bool holds = input->type.is_tensor() || input->type.kind == graph::Type::Kind::list ||
                         input->type.kind == graph::Type::Kind::frame;
      const bool is_read =
          input->definition != nullptr && input->definition->op->is(Trait::reads_heap);
      return holds && node.op != &op::list_size && !is_read && !common.contains(input) &&
             !common.is_there(input);
    });
  }
};

// ---- one block --------------------------------------------------------------------------------

/// What of a block is computed by which `rows` node.
class Segments {
 public:
  Segments(Block& block, const Recursion& recursion, const Flow& flow)
      : block_(block), recursion_(recursion), flow_(flow) {
    before_ = predecessors(block);
    find_stages();
    find_late();
    find_families();
    find_units();
  }

  /// The units in an order in which each can follow the others. One that is not put off has one
  /// node.
  std::vector<std::vector<Node*>> units() const { return grouped(block_.nodes, before_, unit_of_); }

 private:
  bool is_put_off(uint32_t i) const { return recursion_.is_put_off(*block_.nodes[i]); }

  /// How often the way to a node goes from what is put off back to what is not: nodes of one stage
  /// can be computed together.
  void find_stages() {
    stage_.resize(before_.size());
    for (uint32_t i = 0; i < before_.size(); ++i)
      for (const uint32_t other : before_[i])
        stage_[i] =
            std::max(stage_[i], stage_[other] + (is_put_off(other) && !is_put_off(i) ? 1 : 0));
    // What only what is put off uses, is computed with the first of that.
    const auto after = successors(before_);
    for (auto i = static_cast<uint32_t>(before_.size()); i-- > 0;) {
      if (!is_put_off(i) || after[i].empty() || gives_result(*block_.nodes[i])) continue;
      uint32_t first = UINT32_MAX;
      for (const uint32_t user : after[i])
        first = std::min(first, is_put_off(user) ? stage_[user] : stage_[i]);
      stage_[i] = std::max(stage_[i], first);
    }
  }

  /// What is needed for sums alone, all of one stage.
  void find_late() {
    late_.resize(before_.size());
    const auto after = successors(before_);
    for (uint32_t i = static_cast<uint32_t>(before_.size()); i-- > 0;) {
      const Node& node = *block_.nodes[i];
      late_[i] = recursion_.sums.adds(node);
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

  /// Of what is not late, those of one stage and family that hang together; of what is late, all of
  /// one stage. A unit is known by its first node.
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

  /// What costs little and needs not be done in a cycle is done with what uses it, if that is of
  /// one family, else with what it is made of. (A unit that is met costs more than such a node.)
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

/// Makes the `rows` node of one unit.
class RowsMaker {
 public:
  RowsMaker(Graph& graph, Recursion& recursion, Block& block, const std::string& symbol)
      : graph_(graph),
        recursion_(recursion),
        node_(Builder(graph, block).append_unchecked(op::rows, {}, {{"symbol", symbol}}, {})),
        inner_(node_->add_block()),
        single_(node_->add_block()),
        builder_(graph, inner_) {}

  /// `is_needed`: whether a value is used outside of the unit. Tells what is to be used there in
  /// place of it.
  template <class IsNeeded>
  Node* make(const std::vector<Node*>& members, IsNeeded&& is_needed, Renewed& now) {
    for (const Node* node : members)
      for (const Value* output : node->outputs) own_.insert(output);
    node_->span = members.front()->span;
    for (const Node* node : members) add_operands(*node);
    node_->inputs.insert(node_->inputs.end(), added_.begin(), added_.end());
    node_->attributes.set("sums", static_cast<int64_t>(added_.size()));
    for (Value* sum : added_) copies_[sum] = graph_.new_parameter(inner_, sum->type, sum->name);
    std::unordered_map<const Value*, const Value*> origin;
    for (const Value* sum : added_) origin[sum] = sum;
    for (const Node* node : members) add(*node, origin);
    copy_to_single(members);
    give(members, is_needed, origin, now);
    return node_;
  }

 private:
  /// The members as they were.
  void copy_to_single(const std::vector<Node*>& members) {
    for (Value* input : node_->inputs)
      originals_.set(input, graph_.new_parameter(single_, input->type, input->name));
    Builder builder(graph_, single_);
    for (const Node* node : members) {
      for (const Value* input : node->inputs) copy_common_to_single(input, builder);
      originals_.copy(*node, builder);
    }
  }

  /// What is common to all invocations is computed there as well: the rest of the function is over
  /// by then.
  void copy_common_to_single(const Value* value, Builder& builder) {
    if (originals_.has(value) || !recursion_.common.is_inside(value)) return;
    for (const Value* input : value->definition->inputs) copy_common_to_single(input, builder);
    originals_.copy(*value->definition, builder);
  }

  void give(const Value* value, Renewed& now) {
    inner_.results.push_back(copies_.at(value));
    single_.results.push_back(originals_.copy_of(value));
    now[value] = graph_.new_output(*node_, value->type, value->name);
  }

  void add_operands(const Node& node) {
    const bool adds = recursion_.sums.adds(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value* input = node.inputs[i];
      if (own_.contains(input) || copies_.contains(input)) continue;
      if (adds && i == *added_to(node)) {
        added_.push_back(input);
      } else if (!recursion_.common.contains(input)) {
        node_->inputs.push_back(input);
        copies_[input] =
            graph_.new_parameter(inner_, rows_of(input->type, recursion_.rows), input->name);
      }
    }
  }

  /// What stands for a value in the block; what is common to all invocations is computed there.
  Value* inside(Value* value) {
    const auto found = copies_.find(value);
    if (found != copies_.end()) return found->second;
    if (!recursion_.common.is_inside(value)) return value;
    const Node& node = *value->definition;
    std::vector<Value*> inputs;
    std::vector<graph::Type> types;
    for (Value* input : node.inputs) inputs.push_back(inside(input));
    for (const Value* output : node.outputs) types.push_back(output->type);
    builder_.set_span(node.span);
    const Node* copy = builder_.append_unchecked(*node.op, inputs, node.attributes, types);
    for (size_t i = 0; i < node.outputs.size(); ++i) copies_[node.outputs[i]] = copy->outputs[i];
    return copies_.at(value);
  }

  void add(const Node& node, std::unordered_map<const Value*, const Value*>& origin) {
    std::vector<Value*> inputs;
    for (Value* input : node.inputs) inputs.push_back(inside(input));
    if (recursion_.sums.adds(node)) {
      const Value* to = node.inputs[*added_to(node)];
      origin[node.output()] = origin.at(to);
      const auto sum =
          append_sum_of_rows(builder_, node, inputs, added_operands(node, recursion_.common));
      TORCHJANUS_CHECK(sum && (*sum)->type == node.output()->type, "batch: no sum of ",
                       node.op->name);
      copies_[node.output()] = *sum;
      return;
    }
    const auto results = append_for_rows(builder_, node, inputs, differing(node, recursion_.common),
                                         recursion_.rows);
    TORCHJANUS_CHECK(results, "batch: no form of ", node.op->name, " for many rows");
    for (size_t i = 0; i < results->size(); ++i) copies_[node.outputs[i]] = (*results)[i];
  }

  template <class IsNeeded>
  void give(const std::vector<Node*>& members, IsNeeded&& is_needed,
            const std::unordered_map<const Value*, const Value*>& origin, Renewed& now) {
    if (!added_.empty()) return give_sums(members, origin, now);
    for (const Node* node : members)
      for (const Value* output : node->outputs)
        if (is_needed(output)) give(output, now);
  }

  /// The last value that came from each.
  void give_sums(const std::vector<Node*>& members,
                 const std::unordered_map<const Value*, const Value*>& origin, Renewed& now) {
    for (const Value* sum : added_) {
      const Value* last = sum;
      for (const Node* node : members)
        if (const auto found = origin.find(node->output());
            found != origin.end() && found->second == sum)
          last = node->output();
      give(last, now);
    }
  }

  Graph& graph_;
  Recursion& recursion_;
  Node* node_;
  Block &inner_, &single_;
  Builder builder_;
  graph::Copier originals_{graph::Copier::Unknown::same_value};
  std::unordered_set<const Value*> own_;
  std::vector<Value*> added_;
  std::unordered_map<const Value*, Value*> copies_;
};

// ---- kinds ------------------------------------------------------------------------------------

/// What a `rows` node computes for many rows, but for the names of values: two nodes for which this
/// is the same text compute the same.
class Description {
 public:
  explicit Description(const Node& node) {
    const Block& block = *node.blocks.front();
    text_ << node.attributes.get<int64_t>("sums");
    for (size_t i = 0; i < block.parameters.size(); ++i) {
      // A row of one may be a number, of another a tensor.
      text_ << ' ' << node.inputs[i]->type << ' ' << block.parameters[i]->type;
      number(block.parameters[i]);
    }
    for (const Node* inner : block.nodes) add(*inner);
    text_ << "\nyield";
    for (const Value* result : block.results) refer(result);
  }
  std::string text() const { return text_.str(); }

 private:
  void add(const Node& node) {
    TORCHJANUS_CHECK(node.blocks.empty(), "batch: a node with blocks");
    text_ << '\n' << node.op->name;
    for (const Value* input : node.inputs) refer(input);
    for (const auto& [name, value] : node.attributes) text_ << ' ' << name << '=' << value;
    for (const Value* output : node.outputs) {
      text_ << ' ' << output->type;
      number(output);
    }
  }
  void number(const Value* value) { numbers_.emplace(value, numbers_.size()); }
  void refer(const Value* value) {
    if (const auto found = numbers_.find(value); found != numbers_.end()) {
      text_ << " %" << found->second;
    } else {
      text_ << " outer " << value->id;
    }
  }

  std::ostringstream text_;
  std::unordered_map<const Value*, size_t> numbers_;
};

// ---- all blocks -------------------------------------------------------------------------------

/// Edits a pass's own copy of a graph.
class Batcher {
 public:
  Batcher(Graph& graph, Recursion& recursion, std::string symbol,
          std::map<std::string, int64_t>& kinds)
      : graph_(graph), recursion_(recursion), symbol_(std::move(symbol)), kinds_(kinds) {}

  void run() {
    const Flow flow(recursion_.functions,
                    [&](const Node& node) { return recursion_.is_put_off(node); });
    for (Node* function : recursion_.functions) divide(block_of(*function), flow);
    find_ranks(flow);
    for (const auto& [block, units] : divided_) make_rows(*block, units);
    for (Node* function : recursion_.functions) renew(block_of(*function), now_);
  }

 private:
  using Unit = std::vector<Node*>;
  bool is_put_off(const Unit& unit) const { return recursion_.is_put_off(*unit.front()); }

  void divide(Block& block, const Flow& flow) {
    for (Node* node : block.nodes)
      for (const auto& nested : node->blocks)
        if (Recursion::is_segmented(*nested)) divide(*nested, flow);
    divided_.emplace_back(&block, Segments(block, recursion_, flow).units());
  }

  void find_ranks(const Flow& flow) {
    std::vector<Unit> all;
    for (const auto& [block, units] : divided_)
      std::ranges::copy_if(units, std::back_inserter(all),
                           [&](const Unit& unit) { return is_put_off(unit); });
    const std::vector<uint32_t> ranks = flow.ranks(all);
    for (size_t i = 0; i < all.size(); ++i) rank_[all[i].front()] = ranks[i];
  }

  void make_rows(Block& block, const std::vector<Unit>& units) {
    std::unordered_map<const Value*, const Unit*> user;  // null: several
    const auto use = [&](const Value* value, const Unit* unit) {
      const auto [found, is_new] = user.try_emplace(value, unit);
      if (!is_new && found->second != unit) found->second = nullptr;
    };
    for (const Unit& unit : units)
      for (const Node* node : unit)
        for (const Value* operand : operands(*node)) use(operand, &unit);
    for (const Value* result : block.results) use(result, nullptr);
    block.nodes.clear();
    for (const Unit& unit : units) {
      if (!is_put_off(unit)) {
        block.nodes.push_back(unit.front());
        continue;
      }
      Node* rows = RowsMaker(graph_, recursion_, block, symbol_)
                       .make(
                           unit,
                           [&](const Value* value) {
                             const auto found = user.find(value);
                             return found != user.end() && found->second != &unit;
                           },
                           now_);
      rows->attributes.set("rank", int64_t{rank_.at(unit.front())});
      const auto kind = static_cast<int64_t>(kinds_.size());
      rows->attributes.set("kind",
                           kinds_.try_emplace(Description(*rows).text(), kind).first->second);
    }
  }

  Graph& graph_;
  Recursion& recursion_;
  std::string symbol_;
  std::map<std::string, int64_t>& kinds_;
  std::vector<std::pair<Block*, std::vector<Unit>>> divided_;
  std::unordered_map<const Node*, uint32_t> rank_;  ///< by a unit's first node
  Renewed now_;
};

std::string unused_symbol(const Graph& graph) {
  std::unordered_set<std::string> taken;
  const auto take = [&](const graph::Type& type) {
    for (const Dim& dim : type.shape)
      for (const std::string& name : dim.symbols()) taken.insert(name);
  };
  for (const Value* input : graph.inputs()) take(input->type);
  graph::for_each_node(graph.body(), [&](const Node& node) {
    for (const Value* output : node.outputs) take(output->type);
  });
  std::string name = "rows";
  while (taken.contains(name)) name += "_";
  return name;
}

std::vector<Node*> recursive_functions(const Graph& graph) {
  std::vector<Node*> recursive;
  for (Node* node : graph.body().nodes) {
    if (node->op != &op::function) continue;
    const std::vector<Node*> run = graph::functions_run_by(block_of(*node));
    if (std::ranges::find(run, node) != run.end()) recursive.push_back(node);
  }
  return recursive;
}

bool is_transposition(const Node& node) {
  if (node.op != &op::t && node.op != &op::transpose && node.op != &op::permute) return false;
  return std::ranges::count_if(node.output()->type.shape,
                               [](const Dim& dim) { return !dim.is(1); }) > 1;
}

/// Whether something but a product reads what a function transposes. Rows lie in order, and
/// programs see the strides of what is computed of transposed tensors.
bool shows_transposed(const Node& function) {
  static const std::set<const graph::OpDef*> products = {&op::mm, &op::matmul, &op::addmm, &op::bmm,
                                                         &op::linear};
  std::unordered_set<const Value*> transposed;
  bool shown = false;
  const auto look = [&](const Value* value) { shown |= transposed.contains(value); };
  graph::for_each_node(block_of(function), [&](const Node& node) {
    if (is_transposition(node)) transposed.insert(node.output());
  });
  graph::for_each_node(block_of(function), [&](const Node& node) {
    if (!products.contains(node.op)) std::ranges::for_each(node.inputs, look);
    for (const auto& block : node.blocks) std::ranges::for_each(block->results, look);
  });
  std::ranges::for_each(block_of(function).results, look);
  return shown;
}

/// What of a graph's body is to be computed together.
enum class Seeds { calls, loops };

std::vector<Node*> functions_around(Graph& graph, Seeds seeds) {
  if (seeds == Seeds::calls) {
    const std::vector<Node*> functions = recursive_functions(graph);
    return put_together(graph, 2, [&](const Node& node) {
      return node.op == &op::call && std::ranges::count(functions, graph::callee(node)) > 0;
    });
  }
  const std::unordered_set<const Node*> loops = parallel_loops(graph.body());
  return put_together(graph, 1, [&](const Node& node) { return loops.contains(&node); });
}

/// The graph with everything between such nodes of its body put off; nothing if there are few, or
/// it is not possible.
std::optional<Graph> batch_together(const graph::Graph& graph, Seeds seeds,
                                    const std::string& symbol) {
  Graph result = copied(graph);
  const std::vector<Node*> together = functions_around(result, seeds);
  std::vector<Node*> functions = together;
  for (const Node* function : together)
    for (Node* run : graph::functions_run_by(block_of(*function)))
      if (std::ranges::find(functions, run) == functions.end()) functions.push_back(run);
  if (functions.empty()) return std::nullopt;
  for (Node* function : functions) sink(result, block_of(*function));
  Recursion recursion(std::move(functions), together, result.body(), Dim::symbol(symbol));
  const bool shows =
      seeds == Seeds::loops && std::ranges::any_of(together, [](const Node* function) {
        return shows_transposed(*function);
      });
  if (shows || !recursion.can_put_off()) return std::nullopt;
  std::map<std::string, int64_t> kinds;
  Batcher(result, recursion, symbol, kinds).run();
  return copied(result);
}

}  // namespace

graph::Graph batch(const graph::Graph& graph) {
  Graph result = copied(graph);
  const std::vector<Node*> recursive = recursive_functions(result);
  const std::string symbol = unused_symbol(result);
  if (recursive.empty()) {
    auto together = batch_together(result, Seeds::loops, symbol);
    return together ? std::move(*together) : std::move(result);
  }
  if (std::ranges::any_of(recursive,
                          [](const Node* function) { return shows_transposed(*function); }))
    return result;
  std::unordered_set<const Node*> done;
  if (auto together = batch_together(result, Seeds::calls, symbol)) return std::move(*together);
  std::map<std::string, int64_t> kinds;
  for (Node* function : recursive) {
    if (done.contains(function)) continue;
    const std::vector<Node*> functions = graph::functions_run_by(block_of(*function));
    for (Node* each : functions) sink(result, block_of(*each));
    Recursion recursion(functions, {}, result.body(), Dim::symbol(symbol));
    const bool fresh =
        std::ranges::none_of(functions, [&](const Node* each) { return done.contains(each); });
    if (!fresh || !recursion.can_put_off()) continue;
    Batcher(result, recursion, symbol, kinds).run();
    done.insert(functions.begin(), functions.end());
  }
  return copied(result);
}

}  // namespace janus::passes
