// See function_versions.h.
#include "passes/gradient/function_versions.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/check.h"
#include "graph/copier.h"
#include "graph/functions.h"
#include "ops/container.h"
#include "ops/list.h"
#include "passes/gradient/block_reversal.h"
#include "passes/reach/gradient_edges.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Block;
using graph::body_of;
using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Type;
using graph::Value;

namespace {

Block& body_around(const Node& node) {
  Block* block = node.parent;
  while (block->parent != nullptr) block = block->parent->parent;
  return *block;
}

Value* add_frame(Graph& graph, Node& call) {
  Value* frame = graph.new_value(Type::frame(), "frame");
  frame->definition = &call;
  frame->index = static_cast<uint32_t>(call.outputs.size());
  call.outputs.push_back(frame);
  return frame;
}

/// Which values in functions that call each other depend on something whose gradient is wanted. It
/// errs on the side of too many.
class Dependence {
 public:
  /// `call`, from outside, leads to these functions.
  Dependence(const Node& call, const std::vector<Node*>& functions,
             const std::vector<Value*>& captured, const GradientSums& sums) {
    depends_.insert(captured.begin(), captured.end());
    pass_arguments(call, [&](const Value* input) { return sums.needs(input); });
    for (size_t before = SIZE_MAX; before != depends_.size();) {
      before = depends_.size();
      for (const Node* function : functions) visit(body_of(*function));
    }
  }

  bool contains(const Value* value) const { return depends_.contains(value); }

  std::vector<size_t> among(std::span<Value* const> values) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < values.size(); ++i)
      if (carries_gradient(values[i]->type) && contains(values[i])) found.push_back(i);
    return found;
  }

 private:
  template <class Depends>
  void pass_arguments(const Node& call, Depends&& depends) {
    const Node* function = graph::callee(call);
    if (function == nullptr) return;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (carries_gradient(call.inputs[i]->type) && depends(call.inputs[i]))
        depends_.insert(body_of(*function).parameters[i]);
  }

  bool any(std::span<Value* const> values) const {
    return std::ranges::any_of(values, [&](const Value* value) { return contains(value); });
  }

  void visit(const Block& block) {
    for (const Node* node : block.nodes) visit(*node);
  }

  void visit(const Node& node) {
    if (node.op == &op::call) pass_arguments(node, [&](const Value* v) { return contains(v); });
    if (node.op == &op::while_) pass_carried(node);
    for (const auto& block : node.blocks) visit(*block);
    const bool inside =
        std::ranges::any_of(node.blocks, [&](const auto& block) { return any(block->results); });
    if (!passes_gradient(node) || !(inside || any(operands(node)))) return;
    for (const Value* output : node.outputs)
      if (carries_gradient(output->type)) depends_.insert(output);
  }

  void pass_carried(const Node& loop) {
    const Block& body = *loop.blocks[1];
    for (size_t k = 0; k < loop.inputs.size(); ++k)
      if (contains(loop.inputs[k]) || contains(body.results[k]))
        depends_.insert(body.parameters[k]);
  }

  std::unordered_set<const Value*> depends_;
};

/// The values in functions that gradients of some of their results come to. It errs on the side of
/// too many.
class Receiving {
 public:
  Receiving(const Dependence& depends, const std::vector<Value*>& captured)
      : depends_(depends), seen_(captured.begin(), captured.end()) {}

  void add(const Value* value) {
    pending_.push_back(value);
    while (!pending_.empty()) {
      const Value* next = pending_.back();
      pending_.pop_back();
      if (depends_.contains(next) && seen_.insert(next).second) hand_on(*next);
    }
  }

  bool contains(const Value* value) const { return seen_.contains(value); }

 private:
  void hand_on(const Value& value) {
    const Node* node = value.definition;
    if (node == nullptr) return hand_on_from_parameter(value);
    if (!passes_gradient(*node)) return;
    pending_.insert(pending_.end(), node->inputs.begin(), node->inputs.end());
    const Node* function = node->op == &op::call ? graph::callee(*node) : nullptr;
    if (function != nullptr) pending_.push_back(body_of(*function).results[value.index]);
    // The condition of a loop, its first block, carries no gradient.
    for (size_t b = node->op == &op::while_ ? 1 : 0; b < node->blocks.size(); ++b)
      pending_.push_back(node->blocks[b]->results[value.index]);
  }

  /// What an iteration of a loop begins with is what the iteration before has left.
  void hand_on_from_parameter(const Value& value) {
    const Node* node = value.owner->parent;
    if (node == nullptr || node->op != &op::while_) return;
    const auto& parameters = value.owner->parameters;
    const auto place = std::ranges::find(parameters, &value) - parameters.begin();
    pending_.push_back(node->inputs[static_cast<size_t>(place)]);
    pending_.push_back(value.owner->results[static_cast<size_t>(place)]);
  }

  const Dependence& depends_;
  std::unordered_set<const Value*> seen_;
  std::vector<const Value*> pending_;
};

}  // namespace

/// Makes versions of all functions that a call leads to and that a gradient may come to.
class VersionMaker {
 public:
  VersionMaker(FunctionVersions& all, const Node& call, GradientSums& sums,
               BlockDifferentiator& blocks)
      : all_(all), call_(call), sums_(sums), blocks_(blocks), graph_(sums.builder().graph()) {
    functions_ = graph::functions_run_by(call);
    for (Value* value : outer_values(call))
      if (sums.needs(value)) captured_.push_back(value);
  }

  /// Those of the function that the call itself runs; null if no gradient comes through.
  const FunctionVersion* make() {
    const Dependence depends(call_, functions_, captured_, sums_);
    const Node* called = graph::callee(call_);
    Receiving receiving(depends, captured_);
    for (size_t i = 0; i < call_.outputs.size(); ++i)
      if (sums_.gradient(call_.outputs[i]) != nullptr) receiving.add(body_of(*called).results[i]);
    const auto* known = all_.find(*called, depends.among(body_of(*called).parameters),
                                  results_of(*called, depends, receiving), captured_);
    if (known != nullptr) return known;
    for (Node* function : functions_) add_version(*function, depends, receiving);
    for (FunctionVersion* version : made_) copy(*version);
    for (FunctionVersion* version : made_) run_forward_versions(*version);
    for (FunctionVersion* version : made_) reverse(*version);
    for (size_t i = 0; i < made_.size(); ++i) keep_frame(*made_[i], *reversals_[i]);
    return version_of(called);
  }

 private:
  /// Those whose gradients the backward version takes. All tensors, so that calls share a version;
  /// the frame of an earlier differentiation only where a gradient comes to what it keeps.
  static std::vector<size_t> results_of(const Node& function, const Dependence& depends,
                                        const Receiving& receiving) {
    const Block& block = body_of(function);
    std::vector<size_t> results = depends.among(block.results);
    std::erase_if(results, [&](size_t i) {
      const Value* result = block.results[i];
      return result->type.kind == Type::Kind::frame && !receiving.contains(result);
    });
    return results;
  }

  void add_version(Node& function, const Dependence& depends, const Receiving& receiving) {
    FunctionVersion version{.original = &function, .captured = captured_};
    version.parameters = depends.among(body_of(function).parameters);
    version.results = results_of(function, depends, receiving);
    if (version.results.empty()) return;
    all_.versions_.push_back(std::make_unique<FunctionVersion>(std::move(version)));
    made_.push_back(all_.versions_.back().get());
  }

  FunctionVersion* version_of(const Node* original) const {
    const auto found = std::ranges::find(made_, original, &FunctionVersion::original);
    return found == made_.end() ? nullptr : *found;
  }

  /// The last node of the body, moved to behind `place`.
  static void move_behind(Block& body, const Node& place) {
    const auto before = std::ranges::find(body.nodes, &place);
    TORCHJANUS_CHECK(before != body.nodes.end(), "gradient: a function is not in the body");
    std::rotate(std::next(before), std::prev(body.nodes.end()), body.nodes.end());
  }

  void copy(FunctionVersion& version) {
    Block& body = body_around(*version.original);
    Builder builder(graph_, body);
    const std::string name = graph::function_name(*version.original);
    graph::Copier copies(graph::Copier::Unknown::same_value);
    version.forward = copies.copy(*version.original, builder);
    version.forward->attributes.set("name", graph::unused_function_name(body, name + ".forward"));
    move_behind(body, *version.original);
    version.backward = builder.append_unchecked(
        op::function, {}, {{"name", graph::unused_function_name(body, name + ".backward")}}, {});
    move_behind(body, *version.forward);
  }

  void run_forward_versions(const FunctionVersion& version) {
    graph::for_each_node(body_of(*version.forward), [&](Node& node) {
      if (node.op != &op::call) return;
      const FunctionVersion* called = version_of(graph::callee(node));
      if (called == nullptr) return;
      node.attributes.set("callee", graph::function_name(*called->forward));
      add_frame(graph_, node);
    });
  }

  /// Parameters of the backward version: the frame, gradients of results, sums. The frame is the
  /// first.
  void reverse(const FunctionVersion& version) {
    Block& forward = body_of(*version.forward);
    reversals_.push_back(
        std::make_unique<BlockReversal>(graph_, *version.backward, forward, blocks_));
    BlockReversal& reversal = *reversals_.back();
    Block& backward = reversal.block();
    graph_.new_parameter(backward, Type::frame(), "frame");
    std::vector<Value*> outputs, seeds, targets, sums;
    for (const size_t i : version.results) {
      outputs.push_back(forward.results[i]);
      seeds.push_back(gradient_parameter(backward, *forward.results[i]));
    }
    for (const size_t i : version.parameters) {
      targets.push_back(forward.parameters[i]);
      sums.push_back(nullptr);
    }
    for (Value* value : captured_) {
      targets.push_back(value);
      sums.push_back(gradient_parameter(backward, *value));
    }
    backward.results = reversal.run(outputs, seeds, targets, sums);
    for (size_t i = 0; i < targets.size(); ++i)
      if (backward.results[i] == nullptr)
        backward.results[i] = ops::zero_gradient(reversal.builder(), targets[i]->type);
  }

  Value* gradient_parameter(Block& block, const Value& of) {
    return graph_.new_parameter(block, of.type, of.name.empty() ? "" : "d_" + of.name);
  }

  void keep_frame(const FunctionVersion& version, BlockReversal& reversal) {
    reversal.find_saved();
    body_of(*version.forward).results.push_back(reversal.pack());
    reversal.connect(reversal.block().parameters.front());
  }

  FunctionVersions& all_;
  const Node& call_;
  GradientSums& sums_;
  BlockDifferentiator& blocks_;
  Graph& graph_;
  std::vector<Node*> functions_;
  std::vector<Value*> captured_;
  std::vector<FunctionVersion*> made_;
  std::vector<std::unique_ptr<BlockReversal>> reversals_;
};

const FunctionVersion* FunctionVersions::running_in(const Node& call) const {
  const Node* function = graph::callee(call);
  for (const auto& version : versions_)
    if (version->forward == function) return version.get();
  return nullptr;
}

const FunctionVersion* FunctionVersions::find(const Node& function,
                                              const std::vector<size_t>& parameters,
                                              const std::vector<size_t>& results,
                                              const std::vector<Value*>& captured) const {
  for (const auto& version : versions_)
    if (version->original == &function && version->parameters == parameters &&
        version->results == results && version->captured == captured)
      return version.get();
  return nullptr;
}

void FunctionVersions::differentiate(Node& call, GradientSums& sums, BlockDifferentiator& blocks) {
  if (const FunctionVersion* running = running_in(call)) return call_backward(call, *running, sums);
  const FunctionVersion* version = VersionMaker(*this, call, sums, blocks).make();
  if (version == nullptr) return;
  call.attributes.set("callee", graph::function_name(*version->forward));
  add_frame(sums.builder().graph(), call);
  call_backward(call, *version, sums);
}

void FunctionVersions::call_backward(Node& call, const FunctionVersion& version,
                                     GradientSums& sums) const {
  std::vector<Value*> operands = {call.outputs.back()};
  std::vector<Type> types;
  const auto give = [&](const Value* value) {
    Value* gradient = sums.gradient(value);
    operands.push_back(gradient != nullptr ? gradient
                                           : ops::zero_gradient(sums.builder(), value->type));
  };
  for (const size_t i : version.results) give(call.outputs[i]);
  for (const size_t i : version.parameters) types.push_back(call.inputs[i]->type);
  for (const Value* value : version.captured) {
    give(value);
    types.push_back(value->type);
  }
  const Node* backward = sums.builder().append_unchecked(
      op::call, operands, {{"callee", graph::function_name(*version.backward)}}, std::move(types));
  // The sums first: an operand may be one of the captured values itself.
  auto sum = backward->outputs.begin() + static_cast<std::ptrdiff_t>(version.parameters.size());
  for (const Value* value : version.captured) sums.replace(value, *sum++);
  for (size_t k = 0; k < version.parameters.size(); ++k) {
    const Value* operand = call.inputs[version.parameters[k]];
    if (sums.needs(operand)) sums.add(operand, backward->outputs[k]);
  }
}

}  // namespace janus::passes
