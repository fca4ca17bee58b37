// Optimizers are inlined: their step() is Python code over tensors, and its single-tensor path is
// exactly what they do on a CPU. What is here is what their code asks of the surroundings, and
// torch's decorators around it.
#include <set>
#include <utility>

#include "frontend/autograd/grad_attribute.h"
#include "frontend/control/optional.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/subscripts.h"
#include "frontend/tensors/callables.h"
#include "frontend/torch_library/special_callables.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"

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

/// Where a decorator of torch is defined, and how it calls the function that it puts around others.
struct Decorator {
  const char* module;
  std::initializer_list<const char*> path;
  const char* wrapper;
};

/// The code of the wrappers that a decorator makes, all of which share it. Null while its module is
/// not loaded: then there are none.
Object wrapper_code(const Decorator& decorator) {
  Object found = Object::steal(PyImport_GetModule(python::interned(decorator.module)));
  for (const char* name : decorator.path)
    if (found) found = python::try_attribute(found.get(), name);
  if (!found || PyFunction_Check(found.get()) == 0) return {};
  const Object constants = python::attribute(PyFunction_GetCode(found.get()), "co_consts");
  for (Object& constant : python::elements(constants.get()))
    if (PyCode_Check(constant.get()) &&
        text_of(reinterpret_cast<PyCodeObject*>(constant.get())->co_name) == decorator.wrapper)
      return std::move(constant);
  return {};
}

/// Whether the function is a wrapper that the decorator has made.
bool is_made_by(const Decorator& decorator, Object& code, const Known& function) {
  if (!code) code = wrapper_code(decorator);
  return code && code.is(PyFunction_GetCode(function.object.get()));
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
  bool before = interpreter.modes.grad_enabled;
  interpreter.modes.grad_enabled = truth(interpreter, differentiable, -1);
  Value result = call(interpreter, wrapped_function(interpreter, function), arguments);
  interpreter.modes.grad_enabled = before;
  return result;
}

/// Whether each parameter's update depends on that parameter and its state alone.
bool updates_each_alone(PyObject* optimizer) {
  static const std::set<PyObject*> classes = [] {
    std::set<PyObject*> all;
    for (const char* name : {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax",
                             "NAdam", "RAdam", "Rprop", "ASGD"})
      all.insert(imported((std::string("torch.optim.") + name).c_str()));
    return all;
  }();
  return classes.contains(reinterpret_cast<PyObject*>(Py_TYPE(optimizer)));
}

/// step() of an optimizer some of whose parameters have a gradient in some runs only. Its code is
/// interpreted once for each stretch of parameters that have one alike, all others being without:
/// that of those by a flag, as what is done where the flag holds.
class Step {
 public:
  Step(Interpreter& interpreter, Value step, Value self)
      : interpreter_(interpreter), step_(std::move(step)), self_(std::move(self)) {}

  Value run() {
    const auto* known = as<Known>(self_);
    if (known == nullptr || !updates_each_alone(known->object.get()) || !find_stretches())
      return call_step();
    const std::set<const Tensor*> before = interpreter_.without_grad;
    for (const Stretch& stretch : stretches_) {
      interpreter_.without_grad = before;
      for (const Stretch& other : stretches_)
        if (&other != &stretch)
          interpreter_.without_grad.insert(other.parameters.begin(), other.parameters.end());
      if (stretch.flag == nullptr)
        call_step();
      else
        only_if(interpreter_, stretch.flag, stretch.key, [&] { call_step(); });
    }
    interpreter_.without_grad = before;
    return interpreter_.none();
  }

 private:
  struct Stretch {
    graph::Value* flag = nullptr;
    TestKey key;
    std::vector<const Tensor*> parameters;
  };

  Value call_step() {
    Arguments arguments;
    arguments.positional = {self_};
    return call(interpreter_, step_, arguments);
  }

  /// False if all have a gradient in each run, or in none.
  bool find_stretches() {
    bool varies = false;
    Value groups = attribute(interpreter_, self_, "param_groups");
    for (const Value& group : elements_of(interpreter_, groups)) {
      Value parameters = subscript(interpreter_, group, interpreter_.string("params"));
      for (const Value& parameter : elements_of(interpreter_, parameters)) {
        auto tensor = shared_as<Tensor>(parameter);
        if (tensor == nullptr) return false;
        const Value grad = narrowed(interpreter_, read_grad(interpreter_, tensor));
        const auto* optional = as<Optional>(grad);
        if (optional == nullptr && as<Tensor>(grad) == nullptr) continue;
        graph::Value* flag = optional == nullptr ? nullptr : optional->flag;
        varies |= flag != nullptr;
        if (stretches_.empty() || stretches_.back().flag != flag) {
          TestKey key = optional == nullptr ? TestKey() : optional->test;
          if (optional != nullptr && tensor->object) key = {tensor->object, 0};
          stretches_.push_back({flag, std::move(key), {}});
        }
        stretches_.back().parameters.push_back(tensor.get());
      }
    }
    return varies;
  }

  Interpreter& interpreter_;
  Value step_, self_;
  std::vector<Stretch> stretches_;
};

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
  const Value step = wrapped_function(interpreter, function);
  if (arguments.positional.size() == 1 && arguments.keywords.empty())
    return Step(interpreter, step, self).run();
  return call(interpreter, step, arguments);
}

bool sets_to_none(Interpreter& interpreter, const Arguments& arguments) {
  const Value* flag =
      arguments.positional.size() > 1 ? &arguments.positional[1] : arguments.keyword("set_to_none");
  return flag == nullptr || truth(interpreter, *flag, -1);
}

/// Module.zero_grad(set_to_none=True)
Value call_module_zero_grad(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty() || !sets_to_none(interpreter, arguments)) return nullptr;
  const Value& self = arguments.positional[0];
  const Value replica = attribute_or_null(interpreter, self, "_is_replica");
  if (replica != nullptr && truth(interpreter, replica, -1)) return nullptr;
  const Value parameters = call(interpreter, attribute(interpreter, self, "parameters"), {});
  for (const Value& parameter : elements_of(interpreter, parameters))
    if (auto tensor = shared_as<Tensor>(parameter)) clear_grad(interpreter, tensor);
  return interpreter.none();
}

/// Optimizer.zero_grad(set_to_none=True)
Value call_zero_grad(Interpreter& interpreter, const Arguments& arguments) {
  bool to_none = sets_to_none(interpreter, arguments);
  Value groups = attribute(interpreter, arguments.positional.at(0), "param_groups");
  for (const Value& group : elements_of(interpreter, groups)) {
    Value parameters = subscript(interpreter, group, interpreter.string("params"));
    for (const Value& parameter : elements_of(interpreter, parameters)) {
      if (auto tensor = shared_as<Tensor>(parameter); tensor != nullptr && to_none) {
        clear_grad(interpreter, tensor);
        continue;
      }
      Value grad = attribute(interpreter, parameter, "grad");
      expect_narrowed(grad);
      if (as<Tensor>(grad) == nullptr) continue;
      Arguments one;
      one.positional = {grad};
      if (as<Tensor>(grad)->requires_grad)
        interpreter.refuse(ReasonCode::optimizer, "a .grad that requires grad");
      call_named(interpreter, "Tensor.zero_", one);
    }
  }
  return interpreter.none();
}

/// Whether some of the tensors have a gradient in some runs only, and one has one in every run.
bool some_gradients_vary(Interpreter& interpreter, const std::vector<Value>& parameters) {
  bool varies = false, is_certain = false;
  for (const Value& parameter : parameters) {
    auto tensor = shared_as<Tensor>(parameter);
    if (tensor == nullptr || !tensor->is_leaf) return false;
    const Value grad = narrowed(interpreter, read_grad(interpreter, tensor));
    varies |= as<Optional>(grad) != nullptr;
    is_certain |= as<Tensor>(grad) != nullptr;
  }
  return varies && is_certain;
}

/// Clips gradients as if there were all that may be: those that are not there are zeros, which add
/// nothing to the norm, and what becomes of them nobody sees. Null if that makes no difference.
Value clip_all(Interpreter& interpreter, const char* function, const Arguments& arguments) {
  if (interpreter.clips || arguments.positional.empty() ||
      as<Tensor>(arguments.positional[0]) != nullptr)
    return nullptr;
  Arguments listed = arguments;
  std::vector<Value> parameters = elements_of(interpreter, arguments.positional[0]);
  interpreter.sees_all_grads = some_gradients_vary(interpreter, parameters);
  listed.positional[0] = make_list(std::move(parameters));
  // What called this may be done with an iterator, so it is not left to it in any case.
  const bool before = std::exchange(interpreter.clips, true);
  Value result = call(interpreter, interpreter.constant_borrowed(imported(function)), listed);
  interpreter.clips = before;
  interpreter.sees_all_grads = false;
  return result;
}

/// clip_grad_norm_(parameters, max_norm, norm_type=2.0, ...)
Value call_clip_norm(Interpreter& interpreter, const Arguments& arguments) {
  const Value* given =
      arguments.positional.size() > 2 ? &arguments.positional[2] : arguments.keyword("norm_type");
  if (given != nullptr) {
    const auto* known = as<Known>(*given);
    const double norm = known == nullptr ? 0 : PyFloat_AsDouble(known->object.get());
    PyErr_Clear();
    if (!(norm > 0)) return nullptr;
  }
  return clip_all(interpreter, "torch.nn.utils.clip_grad_norm_", arguments);
}

/// clip_grad_value_(parameters, clip_value, foreach)
Value call_clip_value(Interpreter& interpreter, const Arguments& arguments) {
  return clip_all(interpreter, "torch.nn.utils.clip_grad_value_", arguments);
}

/// What stands beside parameters of any dtype: steps that were counted.
bool is_count(const Tensor& tensor) {
  const graph::Type& type = tensor.value->type;
  return type.rank() == 0 && (type.dtype == graph::DType::f32 || type.dtype == graph::DType::f64);
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
      if (tensor == nullptr || (!copies.empty() && is_count(*tensor))) continue;
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

Value call_decorated_function(Interpreter& interpreter, const Known& function,
                              const Arguments& arguments) {
  // The codes are never destroyed: Python may be gone by then.
  static const Decorator untraced{"torch._compile", {"_disable_dynamo"}, "inner"},
      disabled{"torch._dynamo.eval_frame", {"DisableContext", "__call__"}, "_fn"},
      differentiable{"torch.optim.optimizer", {"_use_grad_for_differentiable"}, "_use_grad"},
      hooked{"torch.optim.optimizer", {"Optimizer", "profile_hook_step"}, "wrapper"};
  static Object &of_untraced = *new Object(), &of_disabled = *new Object(),
                &of_differentiable = *new Object(), &of_hooked = *new Object();
  if (is_made_by(differentiable, of_differentiable, function))
    return call_with_grad_of_optimizer(interpreter, function, arguments);
  if (is_made_by(hooked, of_hooked, function))
    return call_hooked_step(interpreter, function, arguments);
  if (is_made_by(untraced, of_untraced, function) ||
      is_made_by(disabled, of_disabled, function))  // what torch.compile puts around optimizers
    return call(interpreter, wrapped_function(interpreter, function), arguments);
  return nullptr;
}

std::span<const SpecialCallable> optimizer_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.optim.Optimizer.zero_grad", call_zero_grad},
      {"torch.nn.Module.zero_grad", call_module_zero_grad},
      {"torch.nn.utils.clip_grad_norm_", call_clip_norm},
      {"torch.nn.utils.clip_grad_value_", call_clip_value},
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
