#include "frontend/tensors/described_call.h"

#include <algorithm>

#include "frontend/core/class_of.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/strides.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

/// None where they are not numbers, or those of a contiguous tensor.
std::vector<int64_t> known_strides(const Tensor& tensor) {
  std::vector<int64_t> strides;
  const auto is_number = [](const graph::Dim& dim) { return dim.is_constant(); };
  if (!tensor.strides || is_contiguous(tensor) || !std::ranges::all_of(*tensor.strides, is_number))
    return strides;
  for (const graph::Dim& stride : *tensor.strides) strides.push_back(stride.value());
  return strides;
}

}  // namespace

bool DescribedArguments::add_all(const CallArguments& arguments) {
  for (const Value& value : arguments.positional) {
    OperatorArgument argument;
    if (!describe(value, argument)) return false;
    list.push_back(std::move(argument));
  }
  for (const auto& [name, value] : arguments.keywords) {
    OperatorArgument argument;
    if (!describe(value, argument)) return false;
    argument.keyword = name;
    list.push_back(std::move(argument));
  }
  sources_.clear();
  for (size_t i = 0; i < list.size(); ++i)
    remember(list[i], i < arguments.positional.size()
                          ? arguments.positional[i]
                          : arguments.keywords[i - arguments.positional.size()].second);
  return true;
}

bool DescribedArguments::describe(const Value& value, OperatorArgument& argument) {
  if (auto* tensor = as<Tensor>(value)) {
    argument.kind = OperatorArgument::Kind::tensor;
    argument.type = read(interpreter_, *tensor)->type;
    argument.requires_grad = tensor->requires_grad;
    argument.strides = known_strides(*tensor);
    return true;
  }
  if (is_flag(value)) {
    // It may decide what the operator is: a dropout that drops nothing gives its operand itself.
    argument.kind = OperatorArgument::Kind::constant;
    argument.object = Object::borrow(truth(interpreter_, value, -1) ? Py_True : Py_False);
    return true;
  }
  if (const auto* number = as<Number>(value)) {
    if (number->dim) {
      argument.kind = OperatorArgument::Kind::dimension;
      argument.dim = *number->dim;
      return true;
    }
    argument.kind = OperatorArgument::Kind::number;
    argument.type = interpreter_.graph_value(value)->type;
    return true;
  }
  Value shadow = opened(interpreter_, value);
  if (const auto* sequence = as<Sequence>(shadow)) {
    if (!is_list_or_tuple(shadow)) return false;
    argument.kind = OperatorArgument::Kind::sequence;
    for (const Value& element : sequence->elements) {
      OperatorArgument part;
      if (!describe(element, part)) return false;
      argument.elements.push_back(std::move(part));
    }
    return true;
  }
  const auto* known = as<Known>(value);
  if (known == nullptr ||
      !(is_immutable_constant(known->object.get()) || is_torch_constant(known->object.get())))
    return false;
  argument.kind = OperatorArgument::Kind::constant;
  argument.object = known->object;
  return true;
}

void DescribedArguments::remember(const OperatorArgument& argument, const Value& value) {
  sources_[&argument] = value;
  if (argument.kind != OperatorArgument::Kind::sequence) return;
  Value shadow = opened(interpreter_, value);
  const auto& elements = as<Sequence>(shadow)->elements;
  for (size_t i = 0; i < elements.size(); ++i) remember(argument.elements[i], elements[i]);
}

std::shared_ptr<const ProducingCall> describe_call(Interpreter& interpreter, PyObject* callable,
                                                   const CallArguments& arguments, size_t result) {
  DescribedArguments described(interpreter);
  if (callable == nullptr || !described.add_all(arguments)) return nullptr;
  return std::make_shared<const ProducingCall>(
      ProducingCall{Object::borrow(callable), std::move(described.list), result});
}

}  // namespace janus::frontend
