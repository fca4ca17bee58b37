// From the arguments that Python passes to the operands and attributes of an operator, and back
// from its results to tensors. The overloads of a callable are tried in order; none fitting, a
// function of torch written in Python is inlined, a builtin becomes an opaque operator.
#include "frontend/tensors/callables.h"

#include <algorithm>
#include <span>

#include "frontend/core/autocast_state.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/autocast.h"
#include "frontend/tensors/opaque.h"
#include "frontend/tensors/overlap.h"
#include "frontend/tensors/overloads.h"
#include "frontend/tensors/refused_arguments.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

std::string describe_callable_object(PyObject* callable) {
  Object name = Object::steal(PyObject_GetAttrString(callable, "__name__"));
  PyErr_Clear();
  return name ? text_of(name.get()) : "an operator";
}

/// Calls the operator, or torch's where only the run knows which strides there are.
Value call_without_casts(Interpreter& interpreter, const OperatorForm& form, PyObject* callable,
                         const CallArguments& arguments, std::string& message) {
  NoOverload why;
  why.message = message;
  Value result = call_overloads(interpreter, form, callable, arguments, why);
  message = why.message;
  return why.strides_unknown ? call_opaque(interpreter, callable, arguments) : result;
}

/// The same, with the operands cast as autocast has it; `message` says why no overload fits.
Value call_form(Interpreter& interpreter, const OperatorForm& form, PyObject* callable,
                const CallArguments& arguments, std::string& message) {
  if (!interpreter.modes.autocast.is_on)
    return call_without_casts(interpreter, form, callable, arguments, message);
  const graph::OpDef& op = *form.ops.front();
  // Nothing is cast for what is written in place.
  CallArguments cast = form.in_place ? arguments : with_casts(interpreter, op, arguments);
  const WithoutAutocast within(interpreter.modes.autocast);
  const std::optional<graph::DType> narrow =
      form.in_place ? std::nullopt : widen_norm(interpreter, op, cast);
  Value result = call_without_casts(interpreter, form, callable, cast, message);
  return narrow && result != nullptr ? cast_to(interpreter, result, *narrow) : result;
}

/// f(..., out=tensor): the result is written into the tensor.
Value call_with_out(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                    const std::shared_ptr<Tensor>& out) {
  CallArguments rest = arguments;
  std::erase_if(rest.keywords, [](const auto& keyword) { return keyword.first == "out"; });
  auto result = shared_as<Tensor>(call_operator(interpreter, callable, rest));
  if (result == nullptr || result->value->definition == nullptr ||
      result->value->type != out->value->type || result->requires_grad || out->requires_grad)
    interpreter.refuse(ReasonCode::unsupported_argument, "the argument out");
  refuse_overlap(interpreter, *out, *result->value->definition, rest);
  // What is written lies as `out` does, not as the operands do.
  const bool lies_alike = result->strides && out->strides && *result->strides == *out->strides;
  graph::Value* const contents =
      lies_alike ? result->value
                 : op::copy(interpreter.builder(), {read(interpreter, *out), result->value});
  write_tracked(interpreter, out, contents, false);
  return out;
}

}  // namespace

Value call_operator(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) {
  if (const Value* out = arguments.keyword("out"))
    if (auto tensor = shared_as<Tensor>(*out); tensor != nullptr && !PyFunction_Check(callable))
      return call_with_out(interpreter, callable, arguments, tensor);
  refuse_numbers_for_tensors(interpreter, callable, arguments);
  if (Value result = call_on_list(interpreter, callable, arguments)) return result;
  std::string message;
  if (const OperatorForm* form = operator_form(callable))
    if (Value result = call_form(interpreter, *form, callable, arguments, message)) return result;
  if (PyFunction_Check(callable) || PyType_Check(callable)) return nullptr;
  if (Value result = call_opaque(interpreter, callable, arguments, message)) return result;
  if (!message.empty())
    interpreter.refuse(ReasonCode::shape_mismatch,
                       cat(describe_callable_object(callable), ": ", message));
  return nullptr;
}

Value call_named(Interpreter& interpreter, std::string_view python_name,
                 const CallArguments& arguments) {
  std::string message;
  const OperatorForm* form = operator_form_named(python_name);
  PyObject* callable = nullptr;
  if (form != nullptr) {
    callable = imported(cat("torch.", python_name));
    if (Value result = call_form(interpreter, *form, callable, arguments, message)) return result;
  }
  callable = imported(cat("torch.", python_name));
  if (callable != nullptr)
    if (Value result = call_opaque(interpreter, callable, arguments, message)) return result;
  interpreter.refuse(ReasonCode::shape_mismatch,
                     cat(python_name, ": ", message.empty() ? "unsupported arguments" : message));
}

std::shared_ptr<Tensor> tensor_by(Interpreter& interpreter, std::string_view python_name,
                                  std::vector<Value> operands) {
  CallArguments arguments;
  arguments.positional = std::move(operands);
  auto tensor = shared_as<Tensor>(call_named(interpreter, python_name, arguments));
  TORCHJANUS_CHECK(tensor != nullptr, python_name, " gave no tensor");
  return tensor;
}

Value full(Interpreter& interpreter, std::vector<Value> sizes, const Value& number,
           graph::DType dtype) {
  CallArguments arguments;
  arguments.positional = {make_tuple(std::move(sizes)), number};
  arguments.keywords.emplace_back("dtype", interpreter.constant(dtype_object(dtype)));
  return call_named(interpreter, "full", arguments);
}

}  // namespace janus::frontend
