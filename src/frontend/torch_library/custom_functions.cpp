// Subclasses of torch.autograd.Function, and hooks on tensors of the run: they cut the graph, and
// backward() calls them.
#include <algorithm>

#include "base/mutation.h"
#include "frontend/autograd/custom_gradient.h"
#include "frontend/autograd/grad_attribute.h"
#include "frontend/autograd/gradient_aliases.h"
#include "frontend/autograd/gradient_flags.h"
#include "frontend/core/custom_gradient_record.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/grad_mode.h"
#include "frontend/core/keys.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/tensor_hooks.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/functions.h"
#include "frontend/objects/attributes.h"
#include "frontend/tensors/tensor.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "ops/list.h"
#include "passes/gradient/reachable.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

using python::Object;

namespace {

/// A new value of the tensor, at which the gradient stops.
graph::Value* cut(Interpreter& interpreter, graph::Value* value) {
  graph::Value* behind = op::detach(interpreter.builder(), {value});
  interpreter.differentiable.insert(behind);
  return behind;
}

void refuse_in_blocks(Interpreter& interpreter, const char* what) {
  if (interpreter.open_scopes() > 0)
    interpreter.refuse(ReasonCode::autograd, cat(what, " in a branch or loop of the graph"));
}

// --- torch.autograd.Function --------------------------------------------------------------------

/// The `ctx` of one call: an object with attributes of its own.
class FunctionContext : public std::enable_shared_from_this<FunctionContext> {
 public:
  static std::shared_ptr<FunctionContext> make(Interpreter& interpreter,
                                               const std::vector<Value>& arguments) {
    static PyObject* const type = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type),
                                                        "s()N", "FunctionCtx", PyDict_New());
    auto context = std::make_shared<FunctionContext>();
    context->object_ = std::make_shared<Instance>(Object::borrow(type));
    context->fill(interpreter, arguments);
    return context;
  }

  const std::shared_ptr<Instance>& object() const { return object_; }
  bool materializes() const { return materializes_; }
  bool is_differentiable(const Value& output) const {
    return std::find(fixed_.begin(), fixed_.end(), output) == fixed_.end();
  }

  /// The caller gets another object for a tensor that forward() gives: it is the same for eager.
  void note_output(const std::shared_ptr<Tensor>& given, const std::shared_ptr<Tensor>& output) {
    const auto is_given = [&](const auto& each) { return each.first == given; };
    if (std::ranges::any_of(saved_, is_given)) saved_.emplace_back(output, output->version);
  }

  void check_saved(const Frames& frames) const {
    for (const auto& [tensor, version] : saved_)
      if (tensor->version != version)
        frames.refuse(ReasonCode::autograd,
                      "a tensor that a Function has saved is changed in place");
  }

 private:
  using Method = Value (FunctionContext::*)(Interpreter&, const CallArguments&);

  void set(const Frames& frames, const char* name, Value value) {
    change_item(frames, *object_->fields, python::string(name), value);
  }

  void add_method(const Frames& frames, const char* name, Method method) {
    // The object holds its methods, and they the context: not the other way round.
    std::weak_ptr<FunctionContext> self = weak_from_this();
    set(frames, name,
        std::make_shared<Native>(
            name, [self, method](Interpreter& inner, const CallArguments& arguments) {
              const auto context = self.lock();
              if (context == nullptr)
                inner.refuse(ReasonCode::autograd, "the ctx of a Function after its call");
              return (context.get()->*method)(inner, arguments);
            }));
  }

  void fill(Interpreter& interpreter, const std::vector<Value>& arguments) {
    std::vector<Value> needs;
    for (const Value& argument : arguments) {
      const auto* tensor = as<Tensor>(argument);
      needs.push_back(
          interpreter.boolean(tensor != nullptr && shows_gradient(interpreter, *tensor)));
    }
    set(interpreter, "needs_input_grad", make_tuple(std::move(needs)));
    set(interpreter, "saved_tensors", make_tuple({}));
    add_method(interpreter, "save_for_backward", &FunctionContext::save);
    add_method(interpreter, "mark_non_differentiable", &FunctionContext::fix);
    add_method(interpreter, "set_materialize_grads", &FunctionContext::materialize);
    add_method(interpreter, "mark_dirty", &FunctionContext::refuse);
  }

  Value save(Interpreter& interpreter, const CallArguments& arguments) {
    saved_.clear();
    for (const Value& value : arguments.positional) {
      if (auto tensor = shared_as<Tensor>(value))
        saved_.emplace_back(tensor, tensor->version);
      else if (!is_missing(value))
        interpreter.refuse(ReasonCode::would_raise, "TypeError: save_for_backward()");
    }
    set(interpreter, "saved_tensors", make_tuple(arguments.positional));
    return interpreter.none();
  }

  Value fix(Interpreter& interpreter, const CallArguments& arguments) {
    fixed_ = arguments.positional;
    return interpreter.none();
  }

  Value materialize(Interpreter& interpreter, const CallArguments& arguments) {
    const auto* flag =
        arguments.positional.size() == 1 ? as<Known>(arguments.positional[0]) : nullptr;
    if (flag == nullptr || !PyBool_Check(flag->object.get()))
      interpreter.refuse(ReasonCode::autograd, "set_materialize_grads()");
    materializes_ = flag->object.is(Py_True);
    return interpreter.none();
  }

  Value refuse(Interpreter& interpreter, const CallArguments&) {
    interpreter.refuse(ReasonCode::autograd, "a Function that changes its inputs");
  }

  std::shared_ptr<Instance> object_;
  std::vector<std::pair<std::shared_ptr<Tensor>, uint32_t>> saved_;
  std::vector<Value> fixed_;  // outputs without a gradient
  bool materializes_ = true;
};

/// One call of a Function.
class Application {
 public:
  Application(Interpreter& interpreter, Value function, std::vector<Value> arguments)
      : interpreter_(interpreter),
        function_(std::move(function)),
        arguments_(std::move(arguments)),
        context_(FunctionContext::make(interpreter, arguments_)) {
    for (const Value& argument : arguments_) {
      const auto* tensor = as<Tensor>(argument);
      needs_gradient_ |= tensor != nullptr && tensor->requires_grad;
    }
    needs_gradient_ = needs_gradient_ && interpreter.modes.grad_enabled;
  }

  Value run() {
    if (needs_gradient_) refuse_in_blocks(interpreter_, "a torch.autograd.Function");
    // The values at the call: what forward() does with them in place comes later.
    for (const Value& argument : arguments_) {
      auto* tensor = as<Tensor>(argument);
      const bool wanted = tensor != nullptr && tensor->requires_grad;
      record_.inputs.push_back(wanted ? read(interpreter_, *tensor) : nullptr);
    }
    const std::vector<uint32_t> versions = versions_of_arguments();
    Value given = forward();
    if (versions != versions_of_arguments())
      interpreter_.refuse(ReasonCode::autograd, "a Function that changes its inputs");
    Value result = wrapped(given);
    if (needs_gradient_) add_record();
    return result;
  }

 private:
  std::vector<uint32_t> versions_of_arguments() const {
    std::vector<uint32_t> versions;
    for (const Value& argument : arguments_)
      if (const auto* tensor = as<Tensor>(argument)) versions.push_back(tensor->version);
    return versions;
  }

  Value forward() {
    const GradMode mode(interpreter_, false);
    static PyObject* const inherited = imported("torch.autograd.Function.setup_context");
    auto* type = as<Known>(function_)->object.get();
    const Object own = interpreter_.must(PyObject_GetAttrString(type, "setup_context"));
    const Value forward = attribute(interpreter_, function_, "forward");
    CallArguments arguments;
    if (own.is(inherited)) {
      arguments.positional.push_back(context_->object());
      arguments.positional.insert(arguments.positional.end(), arguments_.begin(), arguments_.end());
      return call(interpreter_, forward, arguments);
    }
    arguments.positional = arguments_;
    Value result = call(interpreter_, forward, arguments);
    CallArguments of_setup;
    of_setup.positional = {context_->object(), make_tuple(arguments_), result};
    call(interpreter_, attribute(interpreter_, function_, "setup_context"), of_setup);
    return result;
  }

  Value wrapped(const Value& given) {
    if (as<Tensor>(given) != nullptr) return output(given);
    const auto* tuple = as<Sequence>(given);
    if (tuple == nullptr || tuple->is_list)
      interpreter_.refuse(ReasonCode::autograd, "the results of a Function");
    std::vector<Value> outputs;
    for (const Value& element : tuple->elements)
      outputs.push_back(as<Tensor>(element) != nullptr ? output(element) : element);
    return make_tuple(std::move(outputs));
  }

  /// What the caller gets for a tensor that forward() gave.
  Value output(const Value& given) {
    auto tensor = shared_as<Tensor>(given);
    const bool is_argument =
        std::find(arguments_.begin(), arguments_.end(), given) != arguments_.end();
    const bool differentiable = needs_gradient_ && context_->is_differentiable(given) &&
                                graph::is_differentiable(tensor->value->type.dtype);
    if (!differentiable && !is_argument && !needs_gradient_) return given;
    graph::Value* value = read(interpreter_, *tensor);
    auto result = make_tensor(interpreter_, differentiable ? cut(interpreter_, value) : value,
                              differentiable);
    result->strides = tensor->strides;
    result->grad_fn_name = name() + "Backward";
    // Eager raises when such a view of its argument is changed in place.
    result->uncertain_alias = is_argument && differentiable;
    if (is_argument || tensor->base != nullptr || tensor->taken_from != nullptr)
      relate_both_ways(result, memory_of(tensor));
    context_->note_output(tensor, result);
    if (differentiable) record_.outputs.push_back(result->value);
    positions_.push_back(differentiable);
    return result;
  }

  std::string name() const {
    return python::type_name(as<Known>(function_)->object.get()) == "FunctionMeta"
               ? text_of(python::attribute(as<Known>(function_)->object.get(), "__name__").get())
               : std::string();
  }

  /// Whether the backward pass is that of our own programs for what autograd's engine calls
  /// itself: it calls others from a frame of torch's.
  bool stands_for_hook() const {
    static PyObject* const before = imported("torchjanus.module_hooks.InputIdentity");
    static PyObject* const behind = imported("torchjanus.module_hooks.OutputIdentity");
    PyObject* const function = as<Known>(function_)->object.get();
    return function == before || function == behind;
  }

  std::vector<bool> which_are_tensors() const {
    std::vector<bool> found;
    for (const Value& argument : arguments_) found.push_back(as<Tensor>(argument) != nullptr);
    return found;
  }

  /// Refuses what eager would: there has to be a gradient for each argument, None for those that
  /// are no tensors, and no more than None behind.
  static void expect_gradients(Interpreter& interpreter, const std::vector<Value>& given,
                               const std::vector<bool>& are_tensors) {
    if (given.size() < are_tensors.size())
      interpreter.refuse(ReasonCode::would_raise, "RuntimeError: too few gradients");
    for (size_t i = 0; i < given.size(); ++i)
      if (!(i < are_tensors.size() && are_tensors[i]) && !is_none(given[i]))
        interpreter.refuse(ReasonCode::would_raise,
                           "RuntimeError: a gradient of what is no tensor");
  }

  void add_record() {
    if (record_.outputs.empty()) return;
    record_.backward = [function = function_, context = context_, positions = positions_,
                        outputs = record_.outputs, are_tensors = which_are_tensors(),
                        is_hook = stands_for_hook()](Interpreter& interpreter,
                                                     const std::vector<Value>& gradients) {
      context->check_saved(interpreter);
      const GradMode mode(interpreter, false);
      CallArguments arguments;
      arguments.positional.push_back(context->object());
      size_t next = 0;
      for (const bool differentiable : positions) {
        Value gradient = differentiable ? gradients[next] : nullptr;
        if (differentiable && gradient == nullptr && context->materializes())
          gradient = make_tensor(interpreter,
                                 op::zeros_like(interpreter.builder(), {outputs[next]}), false);
        if (!differentiable && context->materializes())
          interpreter.refuse(ReasonCode::autograd, "zeros for an output without a gradient");
        // It may be the caller's own tensor, or one element seen many times.
        if (auto* tensor = gradient == nullptr ? nullptr : as<Tensor>(gradient))
          tensor->uncertain_alias = true;
        arguments.positional.push_back(gradient != nullptr ? gradient : interpreter.none());
        next += differentiable ? 1 : 0;
      }
      const Value backward = attribute(interpreter, function, "backward");
      interpreter.uncounted_of_next = interpreter.engine_frames + (is_hook ? 0 : 1);
      const LeavesAreDue due(true);
      Value result = call(interpreter, backward, arguments);
      const auto* tuple = as<Sequence>(result);
      std::vector<Value> given = {result};
      if (tuple != nullptr && !tuple->is_list) given = tuple->elements;
      expect_gradients(interpreter, given, are_tensors);
      given.resize(are_tensors.size());
      return given;
    };
    interpreter_.custom_gradients.push_back(std::move(record_));
  }

  Interpreter& interpreter_;
  const Value function_;
  const std::vector<Value> arguments_;
  const std::shared_ptr<FunctionContext> context_;
  bool needs_gradient_ = false;
  CustomGradient record_;
  std::vector<bool> positions_;  // of the tensors given: whether they have a gradient
};

/// Function.apply(cls, *arguments)
Value call_apply(Interpreter& interpreter, const CallArguments& arguments) {
  const Awaiting nothing(interpreter, Awaiting::What::nothing);
  if (arguments.positional.empty() || !arguments.keywords.empty()) return nullptr;
  const auto* function = as<Known>(arguments.positional[0]);
  if (function == nullptr || !PyType_Check(function->object.get())) return nullptr;
  std::vector<Value> given(arguments.positional.begin() + 1, arguments.positional.end());
  return Application(interpreter, arguments.positional[0], std::move(given)).run();
}

// --- hooks of modules ---------------------------------------------------------------------------

/// BackwardHook.setup_input_hook and setup_output_hook, by the programs in
/// torchjanus/module_hooks.py.
Value call_watch_inputs(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const program = imported("torchjanus.module_hooks.watch_inputs");
  return inline_function(interpreter, program, nullptr, arguments);
}

Value call_watch_outputs(Interpreter& interpreter, const CallArguments& arguments) {
  static PyObject* const program = imported("torchjanus.module_hooks.watch_outputs");
  return inline_function(interpreter, program, nullptr, arguments);
}

// --- hooks --------------------------------------------------------------------------------------

/// Whether something with a gradient has been computed from the value: by a node, or by a Function,
/// as a gradient goes past its nodes.
bool is_used(Interpreter& interpreter, const graph::Value* value) {
  const auto has = [&](const std::vector<graph::Value*>& values) {
    return std::ranges::find(values, value) != values.end();
  };
  bool used = std::ranges::any_of(interpreter.custom_gradients,
                                  [&](const CustomGradient& record) { return has(record.inputs); });
  graph::for_each_node(interpreter.output().graph.body(), [&](const graph::Node& node) {
    const bool takes = has(node.inputs) || std::ranges::any_of(node.blocks, [&](const auto& block) {
                         return has(block->results);
                       });
    for (const graph::Value* output : node.outputs)
      used = used || (takes && interpreter.differentiable.contains(output));
  });
  return used;
}

std::shared_ptr<Sequence> hooks_of(Interpreter& interpreter, Tensor& tensor) {
  auto& known = interpreter.tensor_hooks[&tensor];
  // The tensor may have been written since: then it has another place in the graph.
  if (known != nullptr && known->value == tensor.value) return known->hooks;
  known = std::make_shared<TensorHooks>();
  known->hooks = std::make_shared<Sequence>(true);
  CustomGradient record;
  record.is_hook = true;
  record.inputs = {tensor.value};
  tensor.value = cut(interpreter, tensor.value);
  known->value = tensor.value;
  record.outputs = {tensor.value};
  record.backward = [hooks = known->hooks](Interpreter& inner,
                                           const std::vector<Value>& gradients) {
    return std::vector<Value>{run_hooks(inner, hooks->elements, gradients[0])};
  };
  interpreter.custom_gradients.push_back(std::move(record));
  return known->hooks;
}

/// Adds the hook to those of the tensor; gives its handle, without the number.
std::shared_ptr<Instance> register_hook(Interpreter& interpreter,
                                        const std::shared_ptr<Tensor>& tensor, const Value& hook) {
  if (!shows_gradient(interpreter, *tensor))
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: a hook on a tensor that requires no gradient");
  if (tensor->source != nullptr || tensor->is_leaf) interpreter.refuse(ReasonCode::hook, "a leaf");
  refuse_in_blocks(interpreter, "a hook");
  read(interpreter, *tensor);
  if (!has_hooks(interpreter.tensor_hooks, *tensor, tensor->value) &&
      is_used(interpreter, tensor->value))
    interpreter.refuse(ReasonCode::hook, "a tensor from which something was computed already");
  // What the views hold that were written leads past the value of this tensor, but not in eager.
  if (tensor->is_viewed && !tensor->past_values.empty())
    interpreter.refuse(ReasonCode::hook, "a tensor that was viewed and changed in place");
  const std::shared_ptr<Sequence> hooks = hooks_of(interpreter, *tensor);
  const size_t place = hooks->elements.size();
  hooks->elements.push_back(hook);
  auto handle =
      std::make_shared<Instance>(Object::borrow(imported("torch.utils.hooks.RemovableHandle")));
  change_item(
      interpreter, *handle->fields, python::string("remove"),
      std::make_shared<Native>("remove", [hooks, place](Interpreter& inner, const CallArguments&) {
        hooks->elements[place] = nullptr;
        return inner.none();
      }));
  return handle;
}

/// Handles have numbers, under which hooks of the program's own are kept as well.
void number(Interpreter& interpreter, const Instance& handle) {
  const Object kind = Object::borrow(imported("torch.utils.hooks.RemovableHandle"));
  const Value handles =
      interpreter.wrap(kind.get(), interpreter.sources().root(Source::Kind::constant, kind));
  const Value next = attribute(interpreter, handles, "next_id");
  change_item(interpreter, *handle.fields, python::string("id"), next);
  write_attribute(
      interpreter, handles, "next_id",
      binary(interpreter, syntax::Operator::Add, next, interpreter.constant(python::integer(1))));
}

/// Tensor.register_hook(self, hook)
Value call_register_hook(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() != 2 || !arguments.keywords.empty()) return nullptr;
  auto tensor = shared_as<Tensor>(arguments.positional[0]);
  if (tensor == nullptr) return nullptr;
  auto handle = register_hook(interpreter, tensor, arguments.positional[1]);
  number(interpreter, *handle);
  return handle;
}

/// Tensor.retain_grad(self): its gradient is kept as `.grad`.
Value call_retain_grad(Interpreter& interpreter, const CallArguments& arguments) {
  auto tensor = shared_as<Tensor>(arguments.positional.at(0));
  if (tensor != nullptr && !tensor->requires_grad && !is_leaf_view(*tensor))
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: retain_grad() without a gradient");
  if (tensor == nullptr || tensor->is_leaf || tensor->grad != nullptr) return interpreter.none();
  std::weak_ptr<Tensor> self = tensor;
  const Value keep = std::make_shared<Native>(
      "retain_grad", [self](Interpreter& inner, const CallArguments& given) -> Value {
        auto kept = self.lock();
        if (kept == nullptr) return inner.none();
        if (!is_missing(kept->grad))
          inner.refuse(ReasonCode::autograd, "a kept gradient that is added to");
        auto gradient = as<Tensor>(given.positional.at(0));
        kept->grad =
            make_tensor(inner, op::contiguous(inner.builder(), {read(inner, *gradient)}), false);
        return inner.none();
      });
  register_hook(interpreter, tensor, keep);
  tensor->grad = interpreter.none();
  return interpreter.none();
}

}  // namespace

std::span<const SpecialCallable> custom_gradient_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.autograd.Function.apply.__func__", call_apply},
      {"torch.autograd.Function.apply", call_apply},  // in C since torch 2.15
      {"torch.Tensor.register_hook", call_register_hook},
      {"torch.Tensor.retain_grad", call_retain_grad},
      {"torch.utils.hooks.BackwardHook.setup_input_hook", call_watch_inputs},
      {"torch.utils.hooks.BackwardHook.setup_output_hook", call_watch_outputs},
  };
  return table;
}

}  // namespace janus::frontend
