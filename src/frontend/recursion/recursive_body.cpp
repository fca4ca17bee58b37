#include "frontend/recursion/recursive_body.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/policy.h"
#include "frontend/core/recursion_state.h"
#include "frontend/recursion/activation.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;

namespace {

std::vector<Value> given_to(const Activation& activation) {
  std::vector<Value> given;
  for (const auto& [name, value] : activation.variables->values) given.push_back(value);
  return given;
}

void collect_roots(const std::shared_ptr<Tensor>& tensor, std::set<Tensor*>& roots) {
  const std::shared_ptr<Tensor> root = memory_of(tensor);
  if (!roots.insert(root.get()).second) return;
  for (const PossibleAlias& alias : root->possible_aliases)
    if (auto other = alias.tensor.lock()) collect_roots(other, roots);
}

}  // namespace

RecursiveBody::RecursiveBody(RecursiveFunctions& functions, Interpreter& interpreter,
                             RecursiveFunction& function, const Activation& activation)
    : functions_(functions),
      interpreter_(interpreter),
      function_(function),
      activation_(activation),
      outer_(interpreter.builder().block()),
      outside_(interpreter, function),
      effects_(interpreter.effect_count()),
      leaves_(interpreter.made_leaves.size()),
      function_count_(functions.size()),
      deepest_(std::exchange(interpreter.deepest, interpreter.depth())),
      depth_(interpreter.depth()) {
  function_.building = this;
  function_.call_environment.emplace(interpreter_, given_to(activation));
  interpreter_.begin_scope(*this);
}

RecursiveBody::~RecursiveBody() {
  interpreter_.deepest = std::max(deepest_, interpreter_.deepest);
  function_.building = nullptr;
}

void RecursiveBody::run() {
  for (int pass = 0; !(pass == 0 ? interpret_first() : interpret(false));)
    if (++pass == policy::kMostBodyPasses) refuse("its result did not reach a fixpoint");
  finish();
}

/// What follows a loop without iterations may not be possible: then there is another way out.
bool RecursiveBody::interpret_first() {
  RecursionState& recursion = interpreter_.recursion();
  recursion.left_loop_out = false;
  try {
    return interpret(true);
  } catch (const Refusal&) {
    if (!recursion.left_loop_out || !recursion.leaves_loops_out) throw;
  }
  PyErr_Clear();
  interpreter_.abandon_scopes(*this);
  struct Restore {
    RecursionState& recursion;
    ~Restore() { recursion.leaves_loops_out = true; }
  } restore{recursion};
  recursion.leaves_loops_out = false;
  return interpret(true);
}

/// Interprets the body once more; true if that found nothing new.
bool RecursiveBody::interpret(bool first) {
  reset();
  function_.at_fixpoint = true;
  block_ = std::make_unique<graph::Block>();
  interpreter_.enter_block(*block_);
  auto variables = std::make_shared<Variables>();
  const Passed given = begin(*variables);
  const size_t lists = function_.growths.size();  // those found on the way are no parameters yet
  Value result;
  try {
    result = activation_.run(variables);
  } catch (const UnknownResult& unknown) {
    if (unknown.function != &function_) throw;
    refuse("no path without a recursive call was found");
  }
  variables.reset();
  outside_.check_lists(lists);
  outside_.collect();
  check_effects();
  return note_result(result, given) && !first;
}

/// What an activation is given.
Passed RecursiveBody::begin(Variables& variables) {
  Rebuilding arguments(interpreter_, [&](const Type& type) {
    return interpreter_.builder().graph().new_parameter(*block_, type);
  });
  variables.scope = activation_.variables->scope;
  variables.parent = activation_.variables->parent;
  for (const auto& [name, spec] : function_.parameters)
    variables.values[name] = arguments.make(spec);
  name_parameters(variables);
  Passed given;
  given.add(arguments);
  given.add(outside_.begin_places(*block_));
  outside_.begin_lists(*block_);
  for (const auto& tensor : given.tensors)
    if (tensor != nullptr) tensor->uncertain_alias = true;
  return given;
}

/// What it gives; true if that was known.
bool RecursiveBody::note_result(const Value& result, const Passed& given) {
  Flattening results(
      interpreter_, [](const std::string&) { return false; },
      [&](const AbstractValue& object) { return outside_.existed(object); });
  TreeSpec spec = results.take(result, "its result");
  Passed given_back;
  given_back.add(results);
  if (function_.at_fixpoint) given_back.add(outside_.end_places());
  std::vector<ResultAliases> aliases = find_aliases(given_back, given);
  block_->results = given_back.values;
  for (const GrowingList& growth : function_.growths)
    if (const Rolled* end = growth.list->elements.rolled().get())
      block_->results.insert(block_->results.end(), end->lists.begin(), end->lists.end());
  const bool has_same_spec = function_.result && same_spec(*function_.result, spec);
  const bool same = has_same_spec && function_.at_fixpoint && aliases == function_.aliases &&
                    !add_classes(*function_.result, spec);
  if (has_same_spec) add_classes(spec, *function_.result);
  function_.result = std::move(spec);
  function_.aliases = std::move(aliases);
  return same;
}

void RecursiveBody::name_parameters(const Variables& variables) {
  for (const auto& [name, value] : variables.values) {
    if (const auto* object = as<RuntimeObject>(value)) object->value->name = name;
    if (const auto* tensor = as<Tensor>(value);
        tensor != nullptr && tensor->value->owner == block_.get())
      tensor->value->name = name;
    if (const auto* number = as<Number>(value);
        number != nullptr && number->value != nullptr && number->value->owner == block_.get())
      number->value->name = name;
  }
}

/// As it was before the function was interpreted.
void RecursiveBody::reset() {
  outside_.restore();
  forget_classes();
  // What was built meanwhile may rest on what this one seemed to give.
  functions_.forget_after(function_count_);
}

/// What is known of objects where the function is made may not hold where it is called next; but
/// the classes of what the call is given are assumptions.
void RecursiveBody::forget_classes() {
  std::erase_if(interpreter_.known_classes, [](const auto& known) {
    return known.first->definition != nullptr || !known.second.is_certain ||
           known.second.classes.size() != 1;
  });
}

void RecursiveBody::check_effects() const {
  if (interpreter_.effect_count() != effects_) refuse("it prints");
  if (interpreter_.made_leaves.size() != leaves_) refuse("it makes leaves");
  graph::for_each_node(*block_, [&](const graph::Node& node) {
    if (node.op == &op::gradient) refuse("gradients inside it");
  });
}

std::vector<ResultAliases> RecursiveBody::find_aliases(const Passed& results,
                                                       const Passed& arguments) const {
  std::vector<std::set<Tensor*>> roots;
  std::vector<ResultAliases> all;
  for (const auto& tensor : results.tensors) {
    ResultAliases aliases;
    std::set<Tensor*>& own = roots.emplace_back();
    if (tensor != nullptr) {
      if (tensor->uncertain_alias && tensor->is_borrowed)
        interpreter_.refuse(ReasonCode::unsupported_tensor,
                            "a tensor of an object met at run time leaves a recursion");
      collect_roots(tensor, own);
    }
    for (Tensor* root : own) {
      for (size_t i = 0; i < arguments.tensors.size(); ++i)
        if (arguments.tensors[i].get() == root) aliases.arguments.insert(i);
      for (size_t i = 0; i < function_.growths.size(); ++i)
        if (function_.growths[i].memory.get() == root) aliases.lists.insert(i);
      if (outside_.existed(root))
        aliases.tensors.push_back(std::static_pointer_cast<Tensor>(root->shared_from_this()));
    }
    for (size_t i = 0; i + 1 < roots.size(); ++i)
      for (Tensor* root : own)
        if (roots[i].contains(root)) aliases.results.insert(i);
    all.push_back(std::move(aliases));
  }
  return all;
}

/// The node, in front of whatever the body has not computed yet.
void RecursiveBody::finish() {
  const int frames = interpreter_.deepest - depth_;
  const History of_function = interpreter_.history;
  outside_.restore();
  interpreter_.history.add(of_function);
  interpreter_.end_scope(*this);
  interpreter_.enter_block(outer_);
  check_visible(*block_);
  graph::Graph& graph = interpreter_.output().graph;
  graph::Node* node = graph.new_node(op::function);
  node->attributes.set("name", function_.name);
  // Each frame of Python may count twice against its limit: once for a call through C.
  node->attributes.set("frames", int64_t{2} * frames);
  node->span = interpreter_.user_span();
  block_->parent = node;
  node->blocks.push_back(std::move(block_));
  graph.append(graph.body(), node);
  function_.is_building = false;
  interpreter_.mark(speculate::LineMark::Kind::graph,
                    cat(activation_.name, " is a function of the graph"));
}

/// A function sees the body and itself, not the branches in which it is called.
void RecursiveBody::check_visible(const graph::Block& block) const {
  std::set<const graph::Block*> inside;
  std::function<void(const graph::Block&)> add = [&](const graph::Block& each) {
    inside.insert(&each);
    for (const graph::Node* node : each.nodes)
      for (const auto& nested : node->blocks) add(*nested);
  };
  add(block);
  const graph::Block* body = &interpreter_.output().graph.body();
  auto check = [&](const graph::Value* value) {
    const graph::Block* home =
        value->definition != nullptr ? value->definition->parent : value->owner;
    if (home != body && !inside.contains(home))
      refuse("it uses a value of a branch or loop around it");
  };
  for (const graph::Block* each : inside) {
    for (const graph::Value* value : each->results) check(value);
    for (const graph::Node* node : each->nodes)
      for (const graph::Value* value : node->inputs) check(value);
  }
}

}  // namespace janus::frontend
