#include "frontend/recursion/recursive_call.h"

#include <string>

#include "frontend/tensors/tensor.h"
#include "frontend/values/symbolic_list.h"
#include "graph/functions.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;

Value RecursiveCall::run(Passed arguments) {
  operands_ = std::move(arguments);
  collect_types(*function_.result, types_);
  take_places();
  take_lists();
  add_flags();
  node_ = interpreter_.builder().append_unchecked(op::call, operands_.values,
                                                  {{"callee", function_.name}}, types_);
  const auto take = [&](const Type& type) { return next_result(type); };
  Rebuilding parts(interpreter_, take), changed(interpreter_, take);
  Value value = parts.make(*function_.result);
  std::vector<Value> changes;
  for (const OutsidePlace& place : function_.places) changes.push_back(changed.make(place.spec));
  Passed result;
  result.add(parts);
  result.add(changed);
  give_lists();
  relate(result);
  for (size_t i = 0; i < changes.size(); ++i) function_.places[i].set(interpreter_, changes[i]);
  return value;
}

/// By which an earlier backward() knows what it came to (gradient_reachability.h).
void RecursiveCall::add_flags() {
  const graph::Node* function =
      graph::find_function(interpreter_.output().graph.body(), function_.name);
  if (function == nullptr) return;
  const std::vector<graph::Value*>& results = function->blocks.front()->results;
  while (types_.size() < results.size()) types_.push_back(results[types_.size()]->type);
}

graph::Value* RecursiveCall::next_result(const Type& type) {
  graph::Value* value = node_->outputs[next_++];
  TORCHJANUS_CHECK(value->type == type, "call: a result of another type");
  return value;
}

/// What the places that the function changes hold.
void RecursiveCall::take_places() {
  Flattening values(
      interpreter_, [](const std::string&) { return true; },
      [](const AbstractValue&) { return true; });
  for (OutsidePlace& place : function_.places) {
    TreeSpec spec = values.take(place.get(interpreter_), place.describe());
    if (function_.is_building && join_strides(place.spec, spec)) function_.at_fixpoint = false;
    TreeSpec known = place.spec;
    if (join_strides(known, spec) || !same_spec(known, spec))
      interpreter_.refuse(ReasonCode::dynamic_value,
                          cat(place.describe(), " is of another kind in a recursion"));
    collect_types(place.spec, types_);
  }
  operands_.add(values);
}

void RecursiveCall::take_lists() {
  for (const GrowingList& growth : function_.growths) {
    const std::shared_ptr<const Rolled> list = given_list(growth);
    operands_.values.insert(operands_.values.end(), list->lists.begin(), list->lists.end());
    for (const Type& type : list_types(growth.form)) types_.push_back(type);
  }
}

/// The list as a call finds it; from then on it is one of the graph.
std::shared_ptr<const Rolled> RecursiveCall::given_list(const GrowingList& growth) {
  std::shared_ptr<const Rolled> list = growth.list->elements.rolled();
  if (list == nullptr)
    list = roll(interpreter_, {}, growth.form, growth.list->elements.known(), growth.front);
  if (!(list->form == growth.form) || (list->front != growth.front && !list->undecided))
    interpreter_.refuse(ReasonCode::dynamic_value, "a list of different elements in a recursion");
  // What it holds may be what comes out.
  Tensor& memory = *growth.memory;
  if (list->memory != growth.memory) {
    memory.uncertain_alias |= list->memory->uncertain_alias;
    memory.possible_aliases.add({list->memory, list->memory->version});
    for (const PossibleAlias& alias : list->memory->possible_aliases) {
      memory.possible_aliases.add(alias);
      if (auto other = alias.tensor.lock())
        other->possible_aliases.add({growth.memory, memory.version});
    }
  }
  growth.list->elements = ElementList(list);
  return list;
}

/// The lists as the call leaves them.
void RecursiveCall::give_lists() {
  for (const GrowingList& growth : function_.growths) {
    auto list = std::make_shared<Rolled>(*growth.list->elements.rolled());
    for (graph::Value*& each : list->lists) each = node_->outputs[next_++];
    list->length = nullptr;
    list->front = growth.front;
    list->undecided = growth.undecided;
    list->memory = growth.memory;
    growth.list->elements = ElementList(std::move(list));
  }
}

/// Notes what the tensors of the result may share memory with.
void RecursiveCall::relate(const Passed& result) const {
  for (size_t i = 0; i < result.tensors.size(); ++i) {
    if (result.tensors[i] == nullptr) continue;
    Tensor& tensor = *result.tensors[i];
    const ResultAliases aliases =  // a place that was found just now has none yet
        i < function_.aliases.size() ? function_.aliases[i] : ResultAliases();
    auto add = [&](const std::shared_ptr<Tensor>& other) {
      frontend::relate(result.tensors[i], other);
    };
    for (const auto& other : aliases.tensors) add(other);
    for (size_t list : aliases.lists) add(function_.growths[list].memory);
    for (size_t argument : aliases.arguments)
      if (operands_.tensors[argument] != nullptr) add(memory_of(operands_.tensors[argument]));
    for (size_t other : aliases.results) {
      add(result.tensors[other]);
      frontend::relate(result.tensors[other], result.tensors[i]);
    }
    // What stands for the tensors of a list has no value.
    if (tensor.value != nullptr && !tensor.requires_grad && !interpreter_.differentiable.empty())
      tensor.value = op::detach(interpreter_.builder(), {tensor.value});
  }
}

}  // namespace janus::frontend
