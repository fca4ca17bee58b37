#include "torch/numbers_for_tensors.h"

#include <torch/csrc/jit/runtime/operator.h>
#include <torch/csrc/utils/python_arg_parser.h>

#include <algorithm>
#include <string>

#include "frontend/core/torch_services.h"

namespace janus::torch {

namespace {

/// Whether it is a tensor, a list of tensors, or None instead.
bool wants_tensor(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  while (type->kind() == c10::TypeKind::OptionalType || type->kind() == c10::TypeKind::ListType)
    type = type->containedType(0);
  return type->kind() == c10::TypeKind::TensorType;
}

/// Whether a number is given by keyword only. Earlier forms of such operators, which the bindings
/// still take, have it among the positional arguments: addcmul(x, 0.5, y, z).
bool has_number_by_keyword(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.kwarg_only() && argument.real_type()->kind() == c10::TypeKind::NumberType;
  });
}

/// The argument of an overload that a call means: by keyword or by position. Null: there is none.
/// Sizes may be given one by one, as the last positional arguments.
const c10::Argument* meant(const c10::FunctionSchema& schema, size_t position,
                           std::string_view keyword) {
  const c10::Argument* last = nullptr;
  for (const c10::Argument& parameter : schema.arguments()) {
    if (keyword.empty() && !parameter.kwarg_only()) {
      last = &parameter;
      if (position-- == 0) return last;
    }
    if (!keyword.empty() && frontend::names_parameter(keyword, parameter.name())) return &parameter;
  }
  const bool is_list = last != nullptr && last->real_type()->kind() == c10::TypeKind::ListType;
  return is_list ? last : nullptr;
}

}  // namespace

bool allows_numbers_as_tensors(std::string_view name) {
  const std::string_view bare = name.substr(name.find("::") + 2);
  return ::torch::should_allow_numbers_as_tensors(std::string(bare.substr(0, bare.find('.'))));
}

bool takes_number(std::string_view name, size_t position, std::string_view keyword) {
  if (allows_numbers_as_tensors(name)) return true;
  const auto& overloads =
      ::torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(std::string(name)));
  bool tensors_only = false;  // what no schema names, the binding knows: let the call be tried
  for (const auto& overload : overloads) {
    const c10::FunctionSchema& schema = overload->schema();
    if (std::ranges::none_of(schema.arguments(), wants_tensor)) continue;  // TorchScript's
    if (has_number_by_keyword(schema)) return true;
    const c10::Argument* parameter = meant(schema, position, keyword);
    if (parameter != nullptr && !wants_tensor(*parameter)) return true;
    tensors_only = tensors_only || parameter != nullptr;
  }
  return !tensors_only;
}

}  // namespace janus::torch
