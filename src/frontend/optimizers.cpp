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

}  // namespace

Value call_decorated(Interpreter& interpreter, const Known& function, const Arguments& arguments) {
  std::string name = code_name(function.object.get());
  if (name == "_disable_dynamo.<locals>.inner")
    return call(interpreter, wrapped_function(interpreter, function), arguments);
  if (name == "_use_grad_for_differentiable.<locals>._use_grad")
    return call_with_grad_of_optimizer(interpreter, function, arguments);
  return nullptr;
}

std::span<const SpecialCallable> optimizer_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.optim.optimizer._default_to_fused_or_foreach", call_default_implementation},
      {"torch.optim.optimizer.Optimizer._accelerator_graph_capture_health_check", call_nothing},
      {"torch.optim.optimizer.Optimizer._optimizer_step_code", call_nothing},
  };
  return table;
}

}  // namespace janus::frontend
