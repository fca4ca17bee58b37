// backward() and torch.autograd.grad(): `gradient` nodes for what the run computed, and what leaves
// get of them (None: a new tensor, else an addition in place).
#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/mutation.h"
#include "frontend/autograd/custom_gradient.h"
#include "frontend/autograd/grad_attribute.h"
#include "frontend/autograd/gradient_aliases.h"
#include "frontend/autograd/gradient_flags.h"
#include "frontend/autograd/gradient_nodes.h"
#include "frontend/autograd/gradient_reachability.h"
#include "frontend/autograd/gradients.h"
#include "frontend/autograd/leaf_hooks.h"
#include "frontend/autograd/tracked_values.h"
#include "frontend/control/optional.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/autocast.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/gradient_exchange.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/make.h"
#include "frontend/values/strides.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/gradient/reachable.h"
#include "passes/gradient/saved_values.h"
#include "passes/reach/reachability.h"
#include "passes/structure/captures.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Distinguishes values of different calls of one function.
void check_not_consumed(Interpreter& interpreter, const std::vector<graph::Value*>& outputs) {
  for (const graph::Node* node : gradient_nodes(outputs, Functions::left_out))
    if (interpreter.history.consumed.contains(node) &&
        any_differentiable(interpreter, node->outputs))
      interpreter.refuse(ReasonCode::autograd,
                         "a second backward through a graph that the first one freed");
}

/// backward() frees all that it runs through.
void consume(InterpreterState& state, const std::vector<graph::Value*>& outputs) {
  for (const graph::Node* node : gradient_nodes(outputs, Functions::left_out))
    state.history.consumed.insert(node);
}

/// autograd.grad() only what lies on its way to a target; in a branch or loop that does,
/// everything.
void consume(InterpreterState& state, const std::vector<graph::Value*>& outputs,
             const std::vector<graph::Value*>& targets) {
  std::unordered_map<const graph::Value*, std::vector<const graph::Node*>> users;
  std::vector<const graph::Value*> leading(targets.begin(), targets.end());
  const std::vector<const graph::Node*> nodes = gradient_nodes(outputs, Functions::left_out);
  for (const graph::Node* node : nodes)
    for (const graph::Value* operand : passes::operands(*node)) {
      users[operand].push_back(node);
      const bool is_given_to_a_block =
          operand->definition == nullptr && operand->owner->parent != nullptr;
      if (is_given_to_a_block) leading.push_back(operand);
    }
  std::vector<const graph::Node*> inner;
  std::unordered_set<const graph::Node*> on_the_way;
  while (!leading.empty()) {
    const graph::Value* value = leading.back();
    leading.pop_back();
    for (const graph::Node* node : users[value]) {
      if (!on_the_way.insert(node).second) continue;
      add_inner_nodes(*node, Functions::left_out, inner);
      leading.insert(leading.end(), node->outputs.begin(), node->outputs.end());
    }
  }
  state.history.consumed.insert(on_the_way.begin(), on_the_way.end());
  state.history.consumed.insert(inner.begin(), inner.end());
}

/// Whether a gradient of the outputs comes to no leaf but the targets.
bool ends_at(const Interpreter& interpreter, const std::vector<graph::Value*>& outputs,
             const std::vector<graph::Value*>& targets) {
  const passes::Reached reached = passes::reached_from(outputs, passes::Paths::any);
  return std::ranges::all_of(values_of_leaves(interpreter), [&](graph::Value* leaf) {
    return !reached.contains(leaf) || std::ranges::find(targets, leaf) != targets.end();
  });
}

struct Outputs {
  std::vector<graph::Value*> values, seeds;
};

/// Whether the tensor requires a gradient in this run. If only the run knows, that it does is
/// guarded: eager execution raises where it does not.
bool requires_gradient_in_run(Interpreter& interpreter, const Tensor& tensor) {
  graph::Value* flag = gradient_flag(interpreter, tensor);
  if (flag == nullptr) return tensor.requires_grad;
  if (const std::optional<bool> outcome = interpreter.outcome_of(flag)) return *outcome;
  return interpreter.follow(flag, Object::borrow(Py_True), /*fact_number=*/-1);
}

void add_output(Interpreter& interpreter, Outputs& outputs, const Value& output,
                const Value& seed) {
  auto* tensor = as<Tensor>(output);
  if (tensor == nullptr || !requires_gradient_in_run(interpreter, *tensor))
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: element 0 of tensors does not require grad");
  if (!interpreter.modes.grad_enabled && tensor->is_leaf)
    interpreter.refuse(ReasonCode::autograd, "a gradient of a leaf");
  graph::Value* value = read(interpreter, *tensor);
  const auto* known = as<Known>(seed);
  if (seed == nullptr || (known != nullptr && known->object.is(Py_None))) {
    for (const graph::Dim& dim : value->type.shape)
      if (!dim.is(1))
        interpreter.refuse(ReasonCode::would_raise,
                           "RuntimeError: grad can be implicitly created only for scalar outputs");
    outputs.seeds.push_back(interpreter.builder().none());
  } else {
    auto* given = as<Tensor>(seed);
    if (given == nullptr || given->value->type != value->type)
      interpreter.refuse(ReasonCode::would_raise, "RuntimeError: a seed of another shape");
    outputs.seeds.push_back(read(interpreter, *given));
  }
  outputs.values.push_back(value);
}

/// Whether eager's gradient (with create_graph) requires grad: whether it depends on a leaf.
bool gradient_requires_grad(Interpreter& interpreter, const Outputs& outputs,
                            graph::Value* gradient) {
  const std::vector<graph::Value*> leaves = values_of_leaves(interpreter);
  const auto depends = [&](passes::Paths paths) {
    const std::vector<bool> reached = passes::reachable({&gradient, 1}, leaves, paths);
    return std::find(reached.begin(), reached.end(), true) != reached.end();
  };
  if (depends(passes::Paths::certain)) return true;
  bool is_certain = !depends(passes::Paths::any);
  for (const graph::Node* node : gradient_nodes(outputs.values))
    if (any_differentiable(interpreter, node->outputs)) is_certain &= node->op->has_plain_gradient;
  if (!is_certain)
    interpreter.refuse(ReasonCode::autograd,
                       "a gradient of which only eager knows whether it requires grad");
  return false;
}

constexpr const char* kMadeBefore = "backward into a graph made before the call";

/// The leaves that backward() accumulates into, each with the values it had that are reached.
struct ReachedLeaf {
  std::shared_ptr<Tensor> leaf;
  std::vector<graph::Value*> values;
  GradientReachability::Reached reached;
};

std::vector<ReachedLeaf> reached_leaves(Interpreter& interpreter, const Outputs& outputs) {
  std::vector<std::shared_ptr<Tensor>> candidates = interpreter.entry_tensor_order;
  candidates.insert(candidates.end(), interpreter.made_leaves.begin(),
                    interpreter.made_leaves.end());
  std::vector<ReachedLeaf> result;
  GradientReachability flags(interpreter, outputs.values);
  for (const auto& tensor : candidates) {
    if (!tensor->requires_grad) continue;
    const std::vector<graph::Value*> values = tracked_values(interpreter, *tensor);
    std::vector<bool> reached = passes::reachable(outputs.values, values);
    ReachedLeaf found{tensor, {}, {}};
    for (size_t i = 0; i < values.size(); ++i)
      if (reached[i]) found.values.push_back(values[i]);
    if (found.values.empty()) continue;
    if (!tensor->is_leaf) interpreter.refuse(ReasonCode::autograd, kMadeBefore);
    found.reached = flags.of(found.values);
    result.push_back(std::move(found));
  }
  return result;
}

/// The graph adds to the leaves' .grad itself: nobody would call hooks of the nodes that do so in
/// eager.
void assume_plain_accumulators(Interpreter& interpreter, const std::vector<ReachedLeaf>& leaves) {
  std::set<const speculate::Source*> sources, reduced;
  for (const ReachedLeaf& each : leaves) {
    const speculate::Source* source = each.leaf->source;
    // What has no path is made by the run. An object that existed before the call might have hooks.
    if (source == nullptr && (each.leaf->is_borrowed || each.leaf->list_memory != nullptr))
      interpreter.refuse(ReasonCode::hook, "the gradient accumulator of a leaf that the run finds");
    if (source == nullptr) continue;
    const auto fact = speculate::tensor_access().describe(each.leaf->object.get(), nullptr);
    if (fact && fact->accumulator_has_reducer && model_of(interpreter, *each.leaf) != nullptr) {
      reduced.insert(source);
      continue;
    }
    if (fact && fact->accumulator_has_hooks)
      interpreter.refuse(ReasonCode::hook, cat("the gradient accumulator of ", source->describe()));
    sources.insert(source);
  }
  for (Assumption& each : interpreter.output().assumptions)
    if (each.kind == Assumption::Kind::tensor) {
      each.tensor.is_accumulated_into |= sources.contains(each.source);
      each.tensor.is_reduced |= reduced.contains(each.source);
    }
}

/// Accumulates a gradient into a leaf's `.grad`.
class Accumulation {
 public:
  Accumulation(Interpreter& interpreter, std::shared_ptr<Tensor> leaf, graph::Value* gradient,
               const GradientReachability::Reached& reached, bool is_new)
      : interpreter_(interpreter),
        leaf_(std::move(leaf)),
        gradient_(gradient),
        reached_(reached),
        is_new_(is_new) {}

  /// Gives the new `.grad` that the leaf has then; null: it had one, in some runs at least.
  std::shared_ptr<Tensor> run() {
    const Value current = narrowed(interpreter_, read_grad(interpreter_, leaf_));
    if (const auto* optional = as<Optional>(current)) {
      add_to_optional(*optional);
      return nullptr;
    }
    if (auto existing = shared_as<Tensor>(current)) {
      where_reached([&] { add_to(*existing); });
      return nullptr;
    }
    const std::shared_ptr<Tensor> made = first_gradient();
    Value grad = made;
    if (!reached_.certain) grad = std::make_shared<Optional>(reached_.flag, grad, reached_.test);
    set_grad(*leaf_, grad);
    return made;
  }

 private:
  void where_reached(const std::function<void()>& body) {
    if (reached_.certain) return body();
    only_if(interpreter_, reached_.flag, reached_.test, body);
  }

  /// It lies as the leaf does, if that fills its memory, else in order.
  std::shared_ptr<Tensor> first_gradient() {
    const auto order = order_in_memory(*leaf_);
    graph::Builder& builder = interpreter_.builder();
    if (!order) {
      const bool has_order = gradient_->type.rank() > 1 || !is_new_;
      return make_tensor(interpreter_,
                         own(has_order ? op::contiguous(builder, {gradient_}) : gradient_), false);
    }
    graph::Value* in_order =
        own(op::contiguous(builder, {op::permute(builder, {gradient_}, {{"dims", *order}})}));
    auto grad = make_tensor(
        interpreter_, op::permute(builder, {in_order}, {{"dims", inverse_order(*order)}}), false);
    grad->strides = leaf_->strides;
    return grad;
  }

  /// A copy of what may be in another tensor's memory.
  graph::Value* own(graph::Value* gradient) {
    return is_new_ ? gradient : op::clone(interpreter_.builder(), {gradient});
  }

  void add_to(Tensor& existing) {
    graph::Value* sum = op::add(interpreter_.builder(), {read(interpreter_, existing), gradient_});
    write(interpreter_, existing, sum);
  }

  /// Where there is none yet, its tensor holds nothing of meaning.
  void add_to_optional(const Optional& optional) {
    auto existing = shared_as<Tensor>(optional.value);
    if (existing->source != nullptr)  // where it was cleared, eager makes another one
      throw CannotMerge{optional.test, "a .grad that one side has cleared is added to"};
    graph::Value* missing = interpreter_.negated_flag(optional.flag);
    where_reached([&] {
      only_if(interpreter_, optional.flag, optional.test, [&] { add_to(*existing); });
      only_if(interpreter_, missing, optional.test,
              [&] { write(interpreter_, *existing, own(gradient_)); });
    });
    if (reached_.certain) return set_grad(*leaf_, existing);
    graph::Value* either = op::scalar_or(interpreter_.builder(), {optional.flag, reached_.flag});
    set_grad(*leaf_, std::make_shared<Optional>(either, existing, optional.test));
  }

  Interpreter& interpreter_;
  const std::shared_ptr<Tensor> leaf_;
  graph::Value* const gradient_;
  const GradientReachability::Reached& reached_;
  const bool is_new_;  ///< nobody else has it; what a tensor of the entry gets is set apart later
};

/// Gives the leaves their gradients, of which there is one for each of their values.
void accumulate(Interpreter& interpreter, const CollectivesSince& own, const Outputs& outputs,
                const Value& seed, const std::vector<ReachedLeaf>& leaves,
                const std::vector<graph::Value*>& targets,
                const std::vector<graph::Value*>& gradients) {
  assume_plain_accumulators(interpreter, leaves);
  std::vector<std::shared_ptr<Tensor>> tensors;
  for (const ReachedLeaf& leaf : leaves) {
    tensors.push_back(leaf.leaf);
    if (!leaf.reached.certain && interpreter.hooked_leaves.contains(leaf.leaf.get()) &&
        !is_planted(State::hook, Mutation::both_sides))
      interpreter.refuse(ReasonCode::hook, "a leaf that gets a gradient in some runs only");
  }
  const std::vector<Value> given = {seed};
  const auto is_made = [](const ReachedLeaf& each) { return each.leaf->source == nullptr; };
  std::optional<GradientAliases> aliases;
  if (as<Tensor>(seed) != nullptr || std::ranges::any_of(leaves, is_made))
    aliases.emplace(Seeds{outputs.values, outputs.seeds, given}, targets);
  in_any_order(interpreter, tensors, [&] {
    size_t next = 0;
    std::vector<std::shared_ptr<Tensor>> made;  // for each target
    for (const ReachedLeaf& leaf : leaves) {
      const size_t first = next;
      graph::Value* sum = gradients[next++];
      for (size_t i = 1; i < leaf.values.size(); ++i)
        sum = op::add(interpreter.builder(), {sum, gradients[next++]});
      Handed handed;  // eager copies what they hold
      sum = through_hooks(interpreter, leaf.leaf, sum, handed);
      const bool wrongly = !leaf.reached.certain && is_planted(State::grad, Mutation::both_sides);
      const bool is_new = !is_made(leaf) || leaf.values.size() > 1 || aliases.value().is_new(first);
      made.push_back(Accumulation(interpreter, leaf.leaf, sum,
                                  wrongly ? GradientReachability::Reached{} : leaf.reached, is_new)
                         .run());
      if (leaf.values.size() > 1) made.back() = nullptr;  // a sum
      made.resize(next);
      call_accumulation_hooks(interpreter, leaf.leaf);
    }
    if (aliases) aliases->note_of_leaves(made);
  });
  std::erase_if(tensors, [&](const auto& tensor) {
    return std::ranges::any_of(leaves, [&](const ReachedLeaf& leaf) {
      return leaf.leaf == tensor && !leaf.reached.certain;
    });
  });
  share_gradients(interpreter, own, outputs.values, tensors);
}

bool known_flag(Interpreter& interpreter, const Value* value, bool otherwise) {
  if (value == nullptr) return otherwise;
  const auto* known = as<Known>(*value);
  if (known == nullptr) interpreter.refuse(ReasonCode::autograd, "a flag of backward()");
  if (known->object.is(Py_None)) return otherwise;
  return truth(interpreter, *value, -1);
}

/// While backward() or grad() of torch runs.
class InEngine {
 public:
  InEngine(Frames& frames, int engine_frames)
      : frames_(frames),
        before_(std::exchange(frames.engine_frames, engine_frames)),
        leaves_(false) {}
  ~InEngine() { frames_.engine_frames = before_; }
  InEngine(const InEngine&) = delete;
  InEngine& operator=(const InEngine&) = delete;

 private:
  Frames& frames_;
  const int before_;
  const LeavesAreDue leaves_;
};

/// The frames of torch.autograd.backward or grad, and of the function that starts the engine.
constexpr int kFramesOfFunction = 2;

/// backward(tensor, gradient, retain_graph, create_graph, inputs)
Value backpropagate(Interpreter& interpreter, const CallArguments& arguments, int frames) {
  const InEngine engine(interpreter, frames);
  const Awaiting nothing(interpreter, Awaiting::What::nothing);
  refuse_within_autocast(interpreter, "backward()");
  bool create_graph = known_flag(interpreter, arguments.given(3, "create_graph"), false);
  bool retain = known_flag(interpreter, arguments.given(2, "retain_graph"), create_graph);
  const Value* inputs = arguments.given(4, "inputs");
  if (create_graph || (inputs != nullptr &&
                       (as<Known>(*inputs) == nullptr || !as<Known>(*inputs)->object.is(Py_None))))
    interpreter.refuse(ReasonCode::autograd, "backward() with create_graph or inputs");
  const Value* seed = arguments.given(1, "gradient");
  Outputs outputs;
  add_output(interpreter, outputs, arguments.positional.at(0), seed == nullptr ? nullptr : *seed);
  check_not_consumed(interpreter, outputs.values);
  const CollectivesSince own(interpreter);
  follow_custom_gradients(interpreter, outputs.values, outputs.seeds, create_graph, retain);
  check_saved_values(interpreter, outputs.values);
  check_not_consumed(interpreter, outputs.values);
  std::vector<ReachedLeaf> leaves = reached_leaves(interpreter, outputs);
  std::vector<graph::Value*> targets;
  for (const ReachedLeaf& leaf : leaves)
    targets.insert(targets.end(), leaf.values.begin(), leaf.values.end());
  std::vector<graph::Value*> gradients;
  if (!targets.empty())
    gradients = append_gradient(interpreter, outputs.values, outputs.seeds, targets,
                                /*create_graph=*/false);
  if (!retain) consume(interpreter, outputs.values);
  accumulate(interpreter, own, outputs, seed == nullptr ? nullptr : *seed, leaves, targets,
             gradients);
  return interpreter.none();
}

/// Tensor.backward, which calls torch.autograd.backward.
Value call_backward(Interpreter& interpreter, const CallArguments& arguments) {
  return backpropagate(interpreter, arguments, kFramesOfFunction + 1);
}

std::vector<Value> tensor_list(Interpreter& interpreter, const Value& value) {
  if (as<Tensor>(value) != nullptr) return {value};
  return elements_of(interpreter, value);
}

/// What computed a pre-existing tensor may have used another one: the
/// gradient goes on to that in eager.
void check_computed_in_run(Interpreter& interpreter, const Outputs& outputs,
                           const std::vector<Value>& inputs) {
  for (const auto& tensor : interpreter.entry_tensor_order) {
    const auto may_be_behind = [&](const Value& input) {
      const auto* wanted = as<Tensor>(input);
      return wanted != tensor.get() && (wanted->source != nullptr || wanted->is_borrowed);
    };
    if (!tensor->requires_grad || tensor->is_leaf || std::ranges::none_of(inputs, may_be_behind))
      continue;
    const std::vector<bool> reached =
        passes::reachable(outputs.values, tracked_values(interpreter, *tensor));
    if (std::ranges::find(reached, true) != reached.end())
      interpreter.refuse(ReasonCode::autograd, kMadeBefore);
  }
}

/// What gradients with respect to these tensors are taken of; refuses what eager would.
std::vector<graph::Value*> targets_of(Interpreter& interpreter, const std::vector<Value>& inputs) {
  std::vector<graph::Value*> targets;
  for (const Value& input : inputs) {
    auto* tensor = as<Tensor>(input);
    if (tensor == nullptr || !shows_gradient(interpreter, *tensor))
      interpreter.refuse(ReasonCode::would_raise,
                         "RuntimeError: an input of autograd.grad() does not require grad");
    if (!tensor->past_values.empty())
      interpreter.refuse(ReasonCode::autograd,
                         "the gradient of a tensor that was changed in place");
    targets.push_back(read(interpreter, *tensor));
  }
  return targets;
}

/// The tensors that the program gets for `inputs`; None for those that were not `reached`.
std::vector<Value> gradient_tensors(Interpreter& interpreter, const Outputs& outputs,
                                    const std::vector<Value>& inputs,
                                    const std::vector<bool>& reached,
                                    const std::vector<graph::Value*>& gradients,
                                    bool create_graph) {
  std::vector<Value> results;
  size_t next = 0;
  std::vector<std::shared_ptr<Tensor>> leaves;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (reached[i]) leaves.push_back(shared_as<Tensor>(inputs[i]));
  in_any_order(interpreter, leaves, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (reached[i]) {
        graph::Value* gradient = gradients[next++];
        if (create_graph && interpreter.hooked_leaves.contains(as<Tensor>(inputs[i])))
          interpreter.refuse(ReasonCode::hook, "a leaf (under create_graph)");
        Handed own;
        gradient = through_hooks(interpreter, shared_as<Tensor>(inputs[i]), gradient, own);
        const bool requires_grad =
            create_graph && gradient_requires_grad(interpreter, outputs, gradient);
        auto tensor = make_tensor(interpreter, gradient, requires_grad);
        if (gradient->type.rank() > 1) tensor->strides = std::nullopt;  // as operators leave it
        note_handed_out(own, tensor);
        results.push_back(std::move(tensor));
      } else {
        results.push_back(interpreter.none());
      }
    }
  });
  return results;
}

/// torch.autograd.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, ...)
Value call_grad(Interpreter& interpreter, const CallArguments& arguments) {
  const InEngine engine(interpreter, kFramesOfFunction);
  refuse_within_autocast(interpreter, "torch.autograd.grad");
  const Value* outputs_given = arguments.given(0, "outputs");
  const Value* inputs_given = arguments.given(1, "inputs");
  if (outputs_given == nullptr || inputs_given == nullptr)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: autograd.grad() misses an argument");
  bool create_graph = known_flag(interpreter, arguments.given(4, "create_graph"), false);
  bool retain = known_flag(interpreter, arguments.given(3, "retain_graph"), create_graph);
  bool materialize = known_flag(interpreter, arguments.keyword("materialize_grads"), false);
  bool allow_unused = known_flag(interpreter, arguments.given(6, "allow_unused"), materialize);
  if (known_flag(interpreter, arguments.keyword("is_grads_batched"), false))
    interpreter.refuse(ReasonCode::autograd, "batched gradients");
  std::vector<Value> seeds;
  if (const Value* given = arguments.given(2, "grad_outputs");
      given != nullptr && (as<Known>(*given) == nullptr || !as<Known>(*given)->object.is(Py_None)))
    seeds = tensor_list(interpreter, *given);
  Outputs outputs;
  std::vector<Value> output_values = tensor_list(interpreter, *outputs_given);
  for (size_t i = 0; i < output_values.size(); ++i)
    add_output(interpreter, outputs, output_values[i], i < seeds.size() ? seeds[i] : nullptr);
  check_not_consumed(interpreter, outputs.values);
  const Handed handed =
      follow_custom_gradients(interpreter, outputs.values, outputs.seeds, create_graph, retain);
  check_saved_values(interpreter, outputs.values);
  check_not_consumed(interpreter, outputs.values);

  const std::vector<Value> all_inputs = tensor_list(interpreter, *inputs_given);
  // A tensor that is given twice has one gradient, which is given back twice.
  std::vector<Value> inputs;
  for (const Value& input : all_inputs)
    if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
  const std::vector<graph::Value*> targets = targets_of(interpreter, inputs);
  check_computed_in_run(interpreter, outputs, inputs);
  check_certain(interpreter, outputs.values, targets);
  std::vector<bool> reached = passes::reachable(outputs.values, targets);
  std::vector<graph::Value*> wanted;
  std::vector<bool> wanted_leaf;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (reached[i]) {
      wanted.push_back(targets[i]);
      wanted_leaf.push_back(as<Tensor>(inputs[i])->is_leaf);
    } else if (!allow_unused) {
      interpreter.refuse(ReasonCode::would_raise,
                         "RuntimeError: a tensor was not used in the graph");
    }
  }
  std::vector<graph::Value*> gradients;
  if (!wanted.empty()) {
    gradients = append_gradient(interpreter, outputs.values, outputs.seeds, wanted, create_graph);
    if (!ends_at(interpreter, outputs.values, wanted))
      interpreter.history.partial.insert(gradients.front()->definition);
  }
  if (!retain) consume(interpreter, outputs.values, wanted);
  if (materialize && std::ranges::find(reached, false) != reached.end())
    interpreter.refuse(ReasonCode::autograd, "materialized zero gradients");
  const std::vector<Value> results =
      gradient_tensors(interpreter, outputs, inputs, reached, gradients, create_graph);
  std::vector<std::shared_ptr<Tensor>> made;
  for (const Value& result : results)
    if (as<Tensor>(result) != nullptr) made.push_back(shared_as<Tensor>(result));
  seeds.resize(output_values.size());
  const GradientAliases aliases({outputs.values, outputs.seeds, seeds}, wanted);
  aliases.note(made);
  for (size_t i = 0; i < wanted.size() && !handed.empty(); ++i)
    if (!wanted_leaf[i] || !aliases.is_new(i)) note_handed_out(handed, made[i]);
  std::vector<Value> all_results;
  for (const Value& input : all_inputs)
    all_results.push_back(
        results[static_cast<size_t>(std::ranges::find(inputs, input) - inputs.begin())]);
  return make_tuple(std::move(all_results));
}

Value call_backward_function(Interpreter& interpreter, const CallArguments& arguments) {
  const Value* tensors = arguments.given(0, "tensors");
  if (tensors == nullptr || as<Tensor>(*tensors) == nullptr || arguments.positional.size() > 1 ||
      !arguments.keywords.empty())
    interpreter.refuse(ReasonCode::autograd, "these arguments of torch.autograd.backward");
  return backpropagate(interpreter, arguments, kFramesOfFunction);
}

}  // namespace

std::span<const SpecialCallable> autograd_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.Tensor.backward", call_backward},
      {"torch.autograd.grad", call_grad},
      {"torch.autograd.backward", call_backward_function},
  };
  return table;
}

}  // namespace janus::frontend
