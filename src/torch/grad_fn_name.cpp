// The node's name depends on which operators torch makes of a call: the call is made once more, of
// torch's own functions on zeros where those are few, else on tensors without data. For these torch
// has code in Python, whose first call loads libraries for a second.
#include "torch/grad_fn_name.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <span>

#include "base/policy.h"
#include "torch/random_state.h"
#include "torch/tensor.h"

namespace janus::torch {

using frontend::OperatorArgument;
using python::Object;

namespace {

/// The rest of a fixed size (5 - n) may be negative for the sample.
std::vector<int64_t> sizes_of(const OperatorArgument& argument) {
  std::vector<int64_t> sizes;
  for (const graph::Dim& dim : argument.type.shape) {
    const auto size = dim.evaluate([](const std::string&) { return policy::kSampleSize; });
    sizes.push_back(std::max<int64_t>(size.value_or(1), 1));
  }
  return sizes;
}

/// From its first element to its last in memory.
int64_t elements_within(const at::Tensor& tensor) {
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return tensor.numel() == 0 ? 0 : last + 1;
}

Object tensor_like(const OperatorArgument& argument, c10::Device device) {
  const std::vector<int64_t> sizes = sizes_of(argument);
  const auto options = at::TensorOptions(scalar_type(argument.type.dtype)).device(device);
  at::Tensor tensor = argument.strides.empty()
                          ? at::empty(sizes, options)
                          : at::empty_strided(sizes, argument.strides, options);
  if (device.is_cpu()) tensor.zero_();
  // No leaf, as those can't be written in place.
  if (argument.requires_grad && tensor.is_non_overlapping_and_dense())
    tensor = tensor.requires_grad_().clone();
  else if (argument.requires_grad)
    tensor = tensor.as_strided({elements_within(tensor)}, {1})
                 .requires_grad_()
                 .clone()
                 .as_strided(sizes, argument.strides);
  return Object::steal(THPVariable_Wrap(tensor));
}

Object python_value(const OperatorArgument& argument, c10::Device device);

Object tuple_of(std::span<const OperatorArgument> elements, c10::Device device) {
  Object tuple = Object::steal(PyTuple_New(static_cast<Py_ssize_t>(elements.size())));
  for (size_t i = 0; tuple && i < elements.size(); ++i) {
    Object element = python_value(elements[i], device);
    if (!element) return {};
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), element.release());
  }
  return tuple;
}

/// Null if there is none, with Python's error set.
Object python_value(const OperatorArgument& argument, c10::Device device) {
  using Kind = OperatorArgument::Kind;
  switch (argument.kind) {
    case Kind::tensor:
      return tensor_like(argument, device);
    case Kind::number:
      if (argument.type.kind == graph::Type::Kind::f64)
        return Object::steal(PyFloat_FromDouble(0.5));
      if (argument.type.kind == graph::Type::Kind::boolean) return Object::borrow(Py_True);
      return Object::steal(PyLong_FromLong(1));
    case Kind::dimension: {
      const auto size =
          argument.dim.evaluate([](const std::string&) { return policy::kSampleSize; });
      return Object::steal(PyLong_FromLongLong(size.value_or(1)));
    }
    case Kind::constant:
      return argument.object;
    case Kind::sequence:
      return tuple_of(argument.elements, device);
  }
  return {};
}

Object call_again(const frontend::ProducingCall& call, c10::Device device) {
  const auto named = std::ranges::find_if(
      call.arguments, [](const OperatorArgument& each) { return !each.keyword.empty(); });
  const Object keywords = Object::steal(PyDict_New());
  for (const OperatorArgument& argument : std::span(named, call.arguments.end())) {
    const Object value = python_value(argument, device);
    if (!value || PyDict_SetItemString(keywords.get(), argument.keyword.c_str(), value.get()) < 0)
      return {};
  }
  const Object arguments = tuple_of(std::span(call.arguments.begin(), named), device);
  if (!arguments) return {};
  const c10::AutoGradMode with_gradients(true);
  return Object::steal(PyObject_Call(call.callable.get(), arguments.get(), keywords.get()));
}

bool has_few_elements(const OperatorArgument& argument) {
  if (argument.kind == OperatorArgument::Kind::sequence)
    return std::ranges::all_of(argument.elements, has_few_elements);
  return argument.kind != OperatorArgument::Kind::tensor ||
         c10::multiply_integers(sizes_of(argument)) <= policy::kMostSampleElements;
}

/// Whether the call has no other effect, and takes no time. Operators that libraries register,
/// which may have effects, are objects of other classes.
bool may_compute(const frontend::ProducingCall& call) {
  PyObject* callable = call.callable.get();
  const bool is_torchs = PyCFunction_Check(callable) || PyFunction_Check(callable) ||
                         Py_TYPE(callable) == &PyMethodDescr_Type;
  return is_torchs && std::ranges::all_of(call.arguments, has_few_elements);
}

}  // namespace

std::string grad_fn_name(const frontend::ProducingCall& call) {
  const KeptGenerator kept;
  Object result = may_compute(call) ? call_again(call, at::kCPU) : Object();
  PyErr_Clear();
  if (!result) result = call_again(call, at::kMeta);
  if (result && PyTuple_Check(result.get()))
    result = Object::borrow(static_cast<Py_ssize_t>(call.result) < PyTuple_GET_SIZE(result.get())
                                ? PyTuple_GET_ITEM(result.get(), call.result)
                                : nullptr);
  PyErr_Clear();
  if (!result || !THPVariable_Check(result.get())) return {};
  const auto& node = THPVariable_Unpack(result.get()).grad_fn();
  return node ? node->name() : std::string();
}

}  // namespace janus::torch
