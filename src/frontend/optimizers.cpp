// Optimizers are inlined: their step() is Python code over tensors, and its single-tensor path is
// exactly what they do on a CPU. What is here is what their code asks of the surroundings, and
// torch's decorators around it.
#include "frontend/attributes.h"
#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/expressions.h"

namespace janus::frontend {

using python::Object;

namespace {

using Arguments = CallArguments;

/// Fused and foreach kernels are chosen for accelerators only.
Value call_default_implementation(Interpreter& interpreter, const Arguments& arguments) {
  const Value* fused = arguments.keyword("use_fused");
  if (fused != nullptr && truth(interpreter, *fused, -1)) return nullptr;
  return make_tuple({interpreter.boolean(false), interpreter.boolean(false)});
}

/// Multi-tensor kernels are for accelerators.
Value call_no_foreach(Interpreter& interpreter, const Arguments&) {
  return interpreter.boolean(false);
}

Value call_nothing(Interpreter& interpreter, const Arguments&) { return interpreter.none(); }

std::string code_name(PyObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(function));
  Object module = Object::borrow(PyFunction_GetModule(function));
  if (!text_of(PyDict_GetItemString(PyFunction_GetGlobals(function), "__name__"))
           .starts_with("torch."))
    return {};
  return text_of(code->co_qualname);
}

/// The function that a decorator wraps, as an attribute of the wrapper.
Value wrapped_function(Interpreter& interpreter, const Known& function) {
  auto wrapper = std::make_shared<Known>(function.object, function.source);
  return attribute(interpreter, wrapper, "__wrapped__");
}

/// Optimizer.step runs without gradients unless the optimizer is differentiable.
Value call_with_grad_of_optimizer(Interpreter& interpreter, const Known& function,
                                  const Arguments& arguments) {
  Value defaults = attribute(interpreter, arguments.positional.at(0), "defaults");
  Value differentiable = subscript(interpreter, defaults, interpreter.string("differentiable"));
  bool before = interpreter.grad_enabled;
  interpreter.grad_enabled = truth(interpreter, differentiable, -1);
  Value result = call(interpreter, wrapped_function(interpreter, function), arguments);
  interpreter.grad_enabled = before;
  return result;
}

/// Optimizer.step's wrapper calls the hooks around it; without hooks it is the function itself.
Value call_hooked_step(Interpreter& interpreter, const Known& function,
                       const Arguments& arguments) {
  static PyObject* const module = imported("torch.optim.optimizer");
  const Value& self = arguments.positional.at(0);
  bool hooks = false;
  for (const char* name : {"_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"})
    hooks = hooks || truth(interpreter, attribute(interpreter, self, name), -1);
  Value owner = interpreter.wrap(
      module, interpreter.sources().root(Source::Kind::constant, Object::borrow(module)));
  for (const char* name : {"_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"})
    hooks = hooks || truth(interpreter, attribute(interpreter, owner, name), -1);
  if (hooks) return nullptr;
  return call(interpreter, wrapped_function(interpreter, function), arguments);
}

/// Optimizer.zero_grad(set_to_none=True)
Value call_zero_grad(Interpreter& interpreter, const Arguments& arguments) {
  const Value* flag =
      arguments.positional.size() > 1 ? &arguments.positional[1] : arguments.keyword("set_to_none");
  bool to_none = flag == nullptr || truth(interpreter, *flag, -1);
  Value groups = attribute(interpreter, arguments.positional.at(0), "param_groups");
  for (const Value& group : elements_of(interpreter, groups)) {
    Value parameters = subscript(interpreter, group, interpreter.string("params"));
    for (const Value& parameter : elements_of(interpreter, parameters)) {
      Value grad = attribute(interpreter, parameter, "grad");
      if (as<Tensor>(grad) == nullptr) continue;
      if (to_none) {
        write_attribute(interpreter, parameter, "grad", interpreter.none());
        continue;
      }
      Arguments one;
      one.positional = {grad};
      if (as<Tensor>(grad)->requires_grad)
        interpreter.refuse(ReasonCode::optimizer, "a .grad that requires grad");
      call_named(interpreter, "Tensor.zero_", one);
    }
  }
  return interpreter.none();
}

/// _group_tensors_by_device_and_dtype(lists, with_indices): one group, where all have one dtype.
Value call_group_tensors(Interpreter& interpreter, const Arguments& arguments) {
  std::vector<Value> lists = elements_of(interpreter, arguments.positional.at(0));
  if (lists.empty()) return nullptr;
  std::vector<Value> copies, indices;
  std::optional<graph::DType> dtype;
  for (const Value& list : lists) {
    std::vector<Value> elements = elements_of(interpreter, list);
    for (const Value& element : elements) {
      const auto* tensor = as<Tensor>(element);
      if (tensor == nullptr) continue;
      if (dtype.value_or(tensor->value->type.dtype) != tensor->value->type.dtype) return nullptr;
      dtype = tensor->value->type.dtype;
    }
    copies.push_back(make_list(std::move(elements)));
  }
  if (!dtype) return nullptr;
  size_t count = as<Sequence>(copies[0])->elements.size();
  for (size_t i = 0; i < count; ++i)
    indices.push_back(interpreter.integer(static_cast<int64_t>(i)));
  Value device = attribute(interpreter, as<Sequence>(copies[0])->elements[0], "device");
  auto grouped = std::make_shared<Dictionary>();
  Value key = make_tuple({device, interpreter.constant(dtype_object(*dtype))});
  grouped->items.emplace_back(
      key_object(interpreter, key),
      make_tuple({make_list(std::move(copies)), make_list(std::move(indices))}));
  return grouped;
}

}  // namespace

Value call_decorated(Interpreter& interpreter, const Known& function, const Arguments& arguments) {
  std::string name = code_name(function.object.get());
  if (name == "_disable_dynamo.<locals>.inner" ||
      name == "DisableContext.__call__.<locals>._fn")  // what torch.compile puts around optimizers
    return call(interpreter, wrapped_function(interpreter, function), arguments);
  if (name == "_use_grad_for_differentiable.<locals>._use_grad")
    return call_with_grad_of_optimizer(interpreter, function, arguments);
  if (name == "Optimizer.profile_hook_step.<locals>.wrapper")
    return call_hooked_step(interpreter, function, arguments);
  return nullptr;
}

std::span<const SpecialCallable> optimizer_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.optim.Optimizer.zero_grad", call_zero_grad},
      {"torch.utils._foreach_utils._has_foreach_support", call_no_foreach},
      {"torch.utils._foreach_utils._device_has_foreach_support", call_no_foreach},
      {"torch.utils._foreach_utils._group_tensors_by_device_and_dtype", call_group_tensors},
      {"torch.optim.optimizer._default_to_fused_or_foreach", call_default_implementation},
      {"torch.optim.optimizer.Optimizer._accelerator_graph_capture_health_check", call_nothing},
      {"torch.optim.optimizer.Optimizer._optimizer_step_code", call_nothing},
  };
  return table;
}

}  // namespace janus::frontend
