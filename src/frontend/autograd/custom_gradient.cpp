#include "frontend/autograd/custom_gradient.h"

#include <algorithm>

#include "base/mutation.h"
#include "frontend/autograd/gradients.h"
#include "frontend/core/communication.h"
#include "frontend/core/custom_gradient_record.h"
#include "frontend/core/grad_mode.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/tensor.h"
#include "ops/list.h"
#include "passes/gradient/reachable.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

using python::Object;

Value run_hooks(Interpreter& interpreter, const std::vector<Value>& hooks, Value gradient) {
  const GradMode mode(interpreter, false);
  for (const Value& hook : std::vector<Value>(hooks)) {
    if (hook == nullptr) continue;
    const uint32_t version = as<Tensor>(gradient)->version;
    CallArguments arguments;
    arguments.positional = {gradient};
    if (is_planted(State::hook, Mutation::not_written)) continue;
    if (is_planted(State::hook, Mutation::twice)) call(interpreter, hook, arguments);
    interpreter.uncounted_of_next = interpreter.engine_frames;
    Value replaced = call(interpreter, hook, arguments);
    if (as<Tensor>(gradient)->version != version)
      interpreter.refuse(ReasonCode::hook, "a tensor (it changes the gradient in place)");
    if (is_missing(replaced)) continue;
    if (as<Tensor>(replaced) == nullptr)
      interpreter.refuse(ReasonCode::would_raise, "TypeError: what a hook gives");
    gradient = replaced;
  }
  return gradient;
}

namespace {

/// Collectives that a backward() makes in the program's own code: the engine's order of Functions
/// is that in which they were called, but a hook's place is that of its tensor.
class CollectivesInOrder {
 public:
  explicit CollectivesInOrder(Interpreter& interpreter)
      : interpreter_(interpreter), since_(interpreter) {}

  /// The program's code of this record has run.
  void note(const CustomGradient& record) {
    const bool has_begun_some = since_.any();
    since_ = CollectivesSince(interpreter_);
    if (!has_begun_some) return;
    ++count_;
    has_hook_ |= record.is_hook;
    if (count_ > 1 && has_hook_)
      interpreter_.refuse(ReasonCode::communication,
                          "backward() (in a hook, and in another one or a Function)");
  }

 private:
  Interpreter& interpreter_;
  CollectivesSince since_;
  size_t count_ = 0;
  bool has_hook_ = false;
};

}  // namespace

Handed follow_custom_gradients(Interpreter& interpreter, std::vector<graph::Value*>& outputs,
                               std::vector<graph::Value*>& seeds, bool create_graph, bool retain) {
  // Each only leads to what was there before it.
  std::vector<graph::Value*> without_gradient;  // where one gave None
  CollectivesInOrder collectives(interpreter);
  Handed handed;
  for (size_t i = interpreter.custom_gradients.size(); i-- > 0;) {
    const CustomGradient record = interpreter.custom_gradients[i];
    const std::vector<bool> reached = passes::reachable(outputs, record.outputs);
    if (std::find(reached.begin(), reached.end(), true) == reached.end()) {
      // Eager calls it all the same, with zeros or with None.
      const std::vector<bool> passed = passes::reachable(without_gradient, record.outputs);
      if (std::ranges::find(passed, true) != passed.end())
        interpreter.refuse(ReasonCode::autograd,
                           "None as a gradient, with a Function or a hook on its way");
      continue;
    }
    if (create_graph)
      interpreter.refuse(ReasonCode::autograd, "create_graph through a Function or a hook");
    if (record.consumed)
      interpreter.refuse(ReasonCode::autograd, "a second backward through a Function or a hook");
    interpreter.custom_gradients[i].consumed = !retain;
    std::vector<graph::Value*> targets;
    for (size_t k = 0; k < reached.size(); ++k)
      if (reached[k]) targets.push_back(record.outputs[k]);
    check_certain(interpreter, outputs, targets);
    const std::vector<graph::Value*> given =
        append_gradient(interpreter, outputs, seeds, targets, false);
    std::vector<Value> gradients;
    size_t next = 0;
    for (const bool has_gradient : reached)
      gradients.push_back(has_gradient ? make_tensor(interpreter, given[next++], false) : nullptr);
    const std::vector<Value> results = record.backward(interpreter, gradients);
    for (const auto& values : {gradients, results})
      for (const Value& each : values)
        if (auto tensor = shared_as<Tensor>(each)) handed.push_back(memory_of(std::move(tensor)));
    collectives.note(record);
    for (size_t k = 0; k < record.inputs.size(); ++k) {
      auto* gradient = as<Tensor>(results[k]);
      if (record.inputs[k] == nullptr) continue;
      if (is_missing(results[k])) {
        without_gradient.push_back(record.inputs[k]);
        continue;
      }
      if (gradient == nullptr || gradient->value->type != record.inputs[k]->type)
        interpreter.refuse(ReasonCode::autograd, "a gradient of another shape or dtype");
      outputs.push_back(record.inputs[k]);
      seeds.push_back(read(interpreter, *gradient));
    }
  }
  return handed;
}

std::vector<graph::Value*> beyond_custom_gradients(const AutogradState& autograd,
                                                   std::vector<graph::Value*> values,
                                                   bool& consumed) {
  for (size_t i = autograd.custom_gradients.size(); i-- > 0;) {
    const CustomGradient& record = autograd.custom_gradients[i];
    const std::vector<bool> reached = passes::reachable(values, record.outputs);
    if (std::find(reached.begin(), reached.end(), true) == reached.end()) continue;
    consumed = consumed || record.consumed;
    for (graph::Value* input : record.inputs)
      if (input != nullptr) values.push_back(input);
  }
  return values;
}

void check_no_custom_gradient(Interpreter& interpreter, graph::Value* value) {
  for (const CustomGradient& record : interpreter.custom_gradients) {
    const std::vector<bool> reached = passes::reachable({&value, 1}, record.outputs);
    if (std::find(reached.begin(), reached.end(), true) != reached.end())
      interpreter.refuse(ReasonCode::autograd,
                         "a gradient due outside that goes through a Function or a hook");
  }
}

}  // namespace janus::frontend
