// See rows_maker.h.
#include "passes/batching/rows_maker.h"

#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "graph/builder.h"
#include "graph/copier.h"
#include "graph/op.h"
#include "ops/list.h"
#include "ops/rows.h"
#include "passes/batching/batching_rules.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Value;
using IsNeeded = std::function<bool(const Value*)>;

class RowsMaker {
 public:
  RowsMaker(Graph& graph, Recursion& recursion, Block& block)
      : graph_(graph),
        recursion_(recursion),
        node_(Builder(graph, block)
                  .append_unchecked(op::rows, {}, {{"symbol", recursion.rows.symbols().front()}},
                                    {})),
        inner_(node_->add_block()),
        single_(node_->add_block()),
        builder_(graph, inner_) {}

  Node* make(const std::vector<Node*>& members, const IsNeeded& is_needed, Renewed& now) {
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
    if (originals_.has(value) || !recursion_.uniform.is_inside(value)) return;
    for (const Value* input : value->definition->inputs) copy_common_to_single(input, builder);
    originals_.copy(*value->definition, builder);
  }

  void give(const Value* value, Renewed& now) {
    inner_.results.push_back(copies_.at(value));
    single_.results.push_back(originals_.copy_of(value));
    now[value] = graph_.new_output(*node_, value->type, value->name);
  }

  void add_operands(const Node& node) {
    const bool adds = recursion_.accumulators.adds(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value* input = node.inputs[i];
      if (own_.contains(input) || copies_.contains(input)) continue;
      if (adds && i == *added_to(node)) {
        added_.push_back(input);
      } else if (!recursion_.uniform.contains(input)) {
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
    if (!recursion_.uniform.is_inside(value)) return value;
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
    if (recursion_.accumulators.adds(node)) {
      const Value* to = node.inputs[*added_to(node)];
      origin[node.output()] = origin.at(to);
      const auto sum =
          append_sum_of_rows(builder_, node, inputs, added_operands(node, recursion_.uniform));
      TORCHJANUS_CHECK(sum && (*sum)->type == node.output()->type, "batch: no sum of ",
                       node.op->name);
      copies_[node.output()] = *sum;
      return;
    }
    const auto results = append_for_rows(
        builder_, node, inputs, varying_operands(node, recursion_.uniform), recursion_.rows);
    TORCHJANUS_CHECK(results, "batch: no form of ", node.op->name, " for many rows");
    for (size_t i = 0; i < results->size(); ++i) copies_[node.outputs[i]] = (*results)[i];
  }

  void give(const std::vector<Node*>& members, const IsNeeded& is_needed,
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

}  // namespace

Node* make_rows(Graph& graph, Recursion& recursion, Block& block, const std::vector<Node*>& members,
                const IsNeeded& is_needed, Renewed& now) {
  return RowsMaker(graph, recursion, block).make(members, is_needed, now);
}

std::string description_of_rows(const Node& rows) { return Description(rows).text(); }

}  // namespace janus::passes
