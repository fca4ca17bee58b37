#include "torch/schema_binding.h"

#include <torch/csrc/Dtype.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace janus::torch {

using c10::Argument;
using c10::FunctionSchema;
using c10::TypeKind;
using frontend::OperatorArgument;
using graph::Type;

namespace {

using Kind = OperatorArgument::Kind;

/// Whether a number (not a tensor) may stand for the type.
bool number_fits(const Type& type, TypeKind kind) {
  switch (kind) {
    case TypeKind::NumberType:
      return true;
    case TypeKind::FloatType:
      return type.kind != Type::Kind::boolean;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return type.kind == Type::Kind::i64;
    case TypeKind::BoolType:
      return type.kind == Type::Kind::boolean;
    default:
      return false;
  }
}

Type type_of_constant(PyObject* object) {
  if (PyBool_Check(object)) return Type::boolean();
  if (PyLong_CheckExact(object)) return Type::i64();
  if (PyFloat_CheckExact(object)) return Type::f64();
  return Type::none();
}

}  // namespace

c10::TypePtr without_optional(c10::TypePtr type) {
  if (auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

bool is_none(const OperatorArgument& argument) {
  return argument.kind == Kind::constant && argument.object.get() == Py_None;
}

SchemaBinding::SchemaBinding(const FunctionSchema& schema,
                             std::span<const OperatorArgument> arguments, bool wrap)
    : schema_(schema), wrap_(wrap) {
  ok_ = assign(arguments);
}

bool SchemaBinding::assign(std::span<const OperatorArgument> arguments) {
  const auto& parameters = schema_.arguments();
  assigned_.assign(parameters.size(), nullptr);
  size_t next = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].keyword.empty()) {
      if (!assign_keyword(arguments[i])) return false;
      continue;
    }
    if (next >= parameters.size() || parameters[next].kwarg_only()) return false;
    if (!fits(arguments[i], parameters[next])) {
      if (next != 1 || !gather(arguments, i, next)) return false;
      break;
    }
    assigned_[next++] = &arguments[i];
  }
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (assigned_[p] == nullptr && !parameters[p].default_value()) return false;
  }
  return true;
}

bool SchemaBinding::assign_keyword(const OperatorArgument& argument) {
  const auto& parameters = schema_.arguments();
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (!frontend::names_parameter(argument.keyword, parameters[p].name())) continue;
    if (assigned_[p] != nullptr || !fits(argument, parameters[p])) return false;
    assigned_[p] = &argument;
    return true;
  }
  return false;
}

bool SchemaBinding::gather(std::span<const OperatorArgument> arguments, size_t first,
                           size_t parameter) {
  const auto& parameters = schema_.arguments();
  const bool is_behind_tensor = parameters.front().type()->kind() == TypeKind::TensorType;
  const bool is_last = parameter + 1 == parameters.size() || parameters[parameter + 1].kwarg_only();
  const c10::TypePtr type = without_optional(parameters[parameter].real_type());
  if (!is_behind_tensor || !is_last || type->kind() != TypeKind::ListType) return false;
  gathered_.kind = Kind::sequence;
  for (size_t i = first; i < arguments.size(); ++i) {
    if (!arguments[i].keyword.empty()) return false;
    gathered_.elements.push_back(arguments[i]);
  }
  if (!fits(gathered_, parameters[parameter])) return false;
  assigned_[parameter] = &gathered_;
  return true;
}

bool SchemaBinding::fits(const OperatorArgument& argument, const Argument& parameter) const {
  if (is_none(argument)) {
    return parameter.type()->kind() == TypeKind::OptionalType;
  }
  return fits(argument, without_optional(parameter.real_type()), parameter.N().has_value());
}

bool SchemaBinding::fits(const OperatorArgument& argument, const c10::TypePtr& type,
                         bool sized) const {
  if (type->kind() == TypeKind::ListType) return list_fits(argument, type, sized);
  switch (argument.kind) {
    case Kind::tensor:
      return type->kind() == TypeKind::TensorType;
    case Kind::number:
      if (type->kind() == TypeKind::TensorType) return wrap_;
      return number_fits(argument.type, type->kind());
    case Kind::dimension:
      return number_fits(Type::i64(), type->kind());
    case Kind::constant:
      return constant_fits(argument.object.get(), type);
    case Kind::sequence:
      return false;
  }
  return false;
}

bool SchemaBinding::constant_fits(PyObject* object, const c10::TypePtr& type) const {
  const Type number = type_of_constant(object);
  switch (type->kind()) {
    case TypeKind::TensorType:
      return wrap_ && number.is_number();
    case TypeKind::StringType:
      return PyUnicode_CheckExact(object) != 0;
    case TypeKind::ScalarTypeType:
      return THPDtype_Check(object);
    case TypeKind::DeviceObjType:
      return PyUnicode_CheckExact(object) != 0 ||
             std::string_view(Py_TYPE(object)->tp_name) == "torch.device";
    case TypeKind::LayoutType:
      return std::string_view(Py_TYPE(object)->tp_name) == "torch.layout";
    case TypeKind::MemoryFormatType:
      return std::string_view(Py_TYPE(object)->tp_name) == "torch.memory_format";
    default:
      return number.is_number() && number_fits(number, type->kind());
  }
}

bool SchemaBinding::list_fits(const OperatorArgument& argument, const c10::TypePtr& type,
                              bool sized) const {
  const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
  if (argument.kind != Kind::sequence) {
    // `int[2]` takes one number for all.
    return sized && element->kind() != TypeKind::TensorType && fits(argument, element, false);
  }
  const bool optional = element->kind() == TypeKind::OptionalType;
  const c10::TypePtr plain = without_optional(element);
  return std::all_of(argument.elements.begin(), argument.elements.end(), [&](const auto& one) {
    return is_none(one) ? optional : fits(one, plain, false);
  });
}

}  // namespace janus::torch
