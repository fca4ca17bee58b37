#include "torch/overload_trial.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <optional>
#include <string>
#include <utility>

#include "ops/structure.h"
#include "torch/arguments.h"
#include "torch/bound_arguments.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::Argument;
using c10::IValue;
using c10::TypeKind;
using frontend::OperatorArgument;
using graph::Dim;
using graph::Type;

using Kind = OperatorArgument::Kind;

OverloadTrial::Outcome OverloadTrial::run(const SymbolChoice& symbols, bool on_meta) {
  symbols_ = &symbols;
  device_ = on_meta ? at::kMeta : at::kCPU;
  made_.clear();
  std::vector<IValue> stack;
  const auto& parameters = overload_.schema().arguments();
  for (size_t p = 0; p < parameters.size(); ++p) {
    const OperatorArgument* argument = binding_.assigned()[p];
    stack.push_back(argument == nullptr ? *parameters[p].default_value()
                                        : value_of(*argument, parameters[p]));
  }
  const c10::AutoGradMode with_gradients(!is_factory());
  overload_.callBoxed(&stack);
  Outcome outcome;
  outcome.tuple = overload_.schema().returns().size() > 1;
  for (const IValue& value : stack) {
    if (value.isTensorList()) {
      outcome.list = true;
      for (const at::Tensor& tensor : value.toTensorList()) outcome.tensors.push_back(tensor);
    } else if (value.isTensor()) {
      outcome.tensors.push_back(value.toTensor());
    } else {
      outcome.numbers.push_back(value.isDouble() ? Type::f64()
                                : value.isBool() ? Type::boolean()
                                                 : Type::i64());
    }
  }
  for (const at::Tensor& tensor : outcome.tensors) outcome.same_as.push_back(same_as(tensor));
  return outcome;
}

at::Tensor OverloadTrial::tensor_for(const OperatorArgument* argument) const {
  const auto found = made_.find(argument);
  return found == made_.end() ? at::Tensor() : found->second;
}

/// Python calls `randint_like` and its like below autograd.
bool OverloadTrial::is_factory() const {
  const std::string& name = overload_.schema().name();
  return ops::is_torchs_own(name) && name.ends_with("_like");
}

const OperatorArgument* OverloadTrial::same_as(const at::Tensor& tensor) const {
  for (const auto& [argument, made] : made_) {
    if (made.is_same(tensor)) return argument;
  }
  return nullptr;
}

at::Tensor OverloadTrial::make(const OperatorArgument& argument) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : argument.type.shape) sizes.push_back(symbols_->evaluate(dim));
  const auto options = at::TensorOptions(scalar_type(argument.type.dtype)).device(device_);
  at::Tensor tensor = argument.strides.empty()
                          ? at::empty(sizes, options)
                          : at::empty_strided(sizes, argument.strides, options);
  if (device_ == at::kCPU) tensor.zero_();
  if (argument.requires_grad) tensor.requires_grad_();
  made_[&argument] = tensor;
  return tensor;
}

/// A value for a number that varies: any will do, if it is no size.
execute::Slot OverloadTrial::example(const Type& type) const {
  if (type.kind == Type::Kind::f64)
    return execute::Slot::of(static_cast<double>(number_) - (number_ == 0 ? 0 : 0.5));
  if (type.kind == Type::Kind::boolean) return execute::Slot::of(true);
  return execute::Slot::of(number_);
}

IValue OverloadTrial::value_of(const OperatorArgument& argument, const Argument& parameter) {
  const c10::TypePtr type = without_optional(parameter.real_type());
  if (is_none(argument)) return {};
  if (type->kind() == TypeKind::ListType && argument.kind == Kind::sequence) {
    const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
    if (element->kind() == TypeKind::TensorType) {
      c10::List<at::Tensor> list;
      for (const OperatorArgument& one : argument.elements) list.push_back(tensor_value(one));
      return list;
    }
    if (without_optional(element)->kind() == TypeKind::TensorType) {
      c10::List<std::optional<at::Tensor>> list;
      for (const OperatorArgument& one : argument.elements) {
        list.push_back(is_none(one) ? std::nullopt : std::optional(tensor_value(one)));
      }
      return list;
    }
  }
  if (type->kind() == TypeKind::TensorType) return tensor_value(argument);
  if (argument.kind == Kind::number) {
    return number_argument(example(argument.type), ArgumentSource::Number::scalar);
  }
  if (argument.kind == Kind::dimension && argument.is_varying_number() && number_ == 0)
    return number_argument(execute::Slot::of(number_), ArgumentSource::Number::scalar);
  return constant_argument(*constant_of(argument), parameter,
                           [this](const std::string& name) { return symbols_->find(name); });
}

at::Tensor OverloadTrial::tensor_value(const OperatorArgument& argument) {
  if (argument.kind == Kind::tensor) return make(argument);
  if (argument.kind == Kind::number) return wrapped_number(example(argument.type));
  const auto value = constant_of(argument);
  TORCHJANUS_CHECK(value, "resolve: an argument is no tensor");
  if (const bool* flag = std::get_if<bool>(&*value))
    return wrapped_number(execute::Slot::of(*flag));
  if (const int64_t* number = std::get_if<int64_t>(&*value)) {
    return wrapped_number(execute::Slot::of(*number));
  }
  if (const double* number = std::get_if<double>(&*value)) {
    return wrapped_number(execute::Slot::of(*number));
  }
  return wrapped_number(execute::Slot::of(symbols_->evaluate(std::get<Dim>(*value))));
}

}  // namespace janus::torch
