// Torch's operators as Python sees them: which callable means which operator of the graph, and how
// Python's arguments become operands and attributes.
#pragma once

#include <span>
#include <string_view>

#include "frontend/interpreter.h"
#include "graph/op.h"

namespace janus::frontend {

/// What a known callable does when it is called with these arguments; null result: not handled
/// after all (then it is inlined or refused).
using Handler = Value (*)(Interpreter& interpreter, const CallArguments& arguments);

/// Calls by identity, for the files of this room that know special callables: builtins, modules,
/// autograd, optimizers. `path` is where Python finds it: "torch.no_grad", "builtins.len".
struct SpecialCallable {
  const char* path;
  Handler handler;
};
/// The tables of the files that have such callables.
std::span<const SpecialCallable> builtin_callables();  // builtins.cpp
std::span<const SpecialCallable> tensor_callables();   // tensor_callables.cpp
std::span<const SpecialCallable> mask_callables();     // masks.cpp
std::span<const SpecialCallable> library_callables();  // library.cpp
std::span<const SpecialCallable> context_variable_callables();
std::span<const SpecialCallable> python_callables();  // python_calls.cpp
/// None until the program has loaded numpy.random, which `import numpy` alone does not.
std::span<const SpecialCallable> numpy_callables();   // python_calls.cpp
std::span<const SpecialCallable> effect_callables();  // effects.cpp
std::span<const SpecialCallable> deque_callables();   // deques.cpp
std::span<const SpecialCallable> dict_callables();    // dicts.cpp
std::span<const SpecialCallable> set_callables();     // sets.cpp
std::span<const SpecialCallable> standard_library_callables();
std::span<const SpecialCallable> custom_gradient_callables();
std::span<const SpecialCallable> autograd_callables();    // autograd.cpp
std::span<const SpecialCallable> autocast_callables();    // autocast.cpp
std::span<const SpecialCallable> checkpoint_callables();  // checkpoint.cpp
std::span<const SpecialCallable> requires_grad_callables();
std::span<const SpecialCallable> copy_callables();
std::span<const SpecialCallable> optimizer_callables();  // optimizers.cpp
std::span<const SpecialCallable> foreach_callables();    // foreach.cpp
std::span<const SpecialCallable> module_callables();     // modules.cpp
std::span<const SpecialCallable> recurrent_callables();  // recurrent_layers.cpp

/// Calls a function that one of torch's decorators made, as what it does in eager; null if it is
/// no such function (optimizers.cpp).
Value call_decorated(Interpreter& interpreter, const Known& function,
                     const CallArguments& arguments);

/// The handler of a callable, or null.
Handler special_handler(PyObject* callable);
/// Of the callable that the tables state by that path, whatever the program has there.
Handler handler_named(std::string_view path);

/// The operators that the callable may mean (overloads), in order; `in_place`: it is the
/// trailing-underscore form of them.
struct OperatorForm {
  std::vector<const graph::OpDef*> ops;
  bool in_place = false;
};
const OperatorForm* operator_form(PyObject* callable);
const OperatorForm* operator_form_named(std::string_view python_name);

/// Calls a torch builtin or function that means an operator; null if it means none that fits.
Value call_operator(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments);
/// Any other builtin of torch, as an `opaque` node; null if it is none.
/// `native_refusal`: why the operator that we know does not take them, if there is one.
Value call_opaque(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                  const std::string& native_refusal = {});

/// The call as grad_fn_name() of TorchServices takes it; null if an argument can't be described.
std::shared_ptr<const ProducingCall> describe_call(Interpreter& interpreter, PyObject* callable,
                                                   const CallArguments& arguments, size_t result);

/// Calls an operator found by its Python name ("Tensor.add", "matmul").
Value call_named(Interpreter& interpreter, std::string_view python_name,
                 const CallArguments& arguments);
/// The same of operands in order, by an operator that gives one tensor.
std::shared_ptr<Tensor> tensor_by(Interpreter& interpreter, std::string_view python_name,
                                  std::vector<Value> operands);
/// A new tensor of these sizes whose elements are all `number`.
Value full(Interpreter& interpreter, std::vector<Value> sizes, const Value& number,
           graph::DType dtype);

/// Whether the object is a constant of torch: a dtype, device, layout, memory format.
bool is_torch_constant(PyObject* object);
/// Whether objects of the class are such constants (so making one only computes).
bool is_torch_constant_class(PyTypeObject* type);
std::optional<graph::DType> dtype_of(PyObject* object);
python::Object dtype_object(graph::DType dtype);
/// torch, torch.Tensor, torch.Size: looked up once.
PyObject* torch_module();
PyTypeObject* tensor_class();
PyTypeObject* size_class();
PyTypeObject* parameter_class();
/// The object found by a dotted path, null if there is none.
PyObject* imported(std::string_view path);

}  // namespace janus::frontend
