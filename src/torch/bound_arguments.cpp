#include "torch/bound_arguments.h"

#include <torch/csrc/Dtype.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "python/integer.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::Argument;
using c10::FunctionSchema;
using c10::TypeKind;
using frontend::OperatorArgument;
using frontend::ResolvedOperator;
using graph::AttributeValue;
using graph::Shape;
using graph::Type;

namespace {

using Kind = OperatorArgument::Kind;

/// A constant number, string, dtype, ... as an attribute; nullopt if it is something else.
std::optional<AttributeValue> attribute_of(PyObject* object) {
  if (object == Py_None) return graph::None{};
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_CheckExact(object)) return python::int64_of(object);
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  if (PyUnicode_CheckExact(object)) return std::string(PyUnicode_AsUTF8(object));
  if (THPDtype_Check(object)) {
    const auto dtype = dtype_of(reinterpret_cast<THPDtype*>(object)->scalar_type);
    if (dtype) return *dtype;
    return std::nullopt;
  }
  const python::Object text = python::Object::steal(PyObject_Str(object));
  const std::string type = Py_TYPE(object)->tp_name;
  if (text && (type == "torch.device" || type == "torch.layout" || type == "torch.memory_format")) {
    return std::string(PyUnicode_AsUTF8(text.get()));
  }
  PyErr_Clear();
  return std::nullopt;
}

/// Whether the argument holds something that varies from call to call.
bool is_operand(const OperatorArgument& argument) {
  if (argument.kind == Kind::tensor || argument.kind == Kind::number) return true;
  return argument.kind == Kind::sequence &&
         std::any_of(argument.elements.begin(), argument.elements.end(), is_operand);
}

/// Turns bound arguments into a node's operands and attributes.
class Encoder {
 public:
  Encoder(const FunctionSchema& schema, const SchemaBinding& binding, ResolvedOperator& result)
      : schema_(schema), result_(result) {
    for (size_t p = 0; p < schema.arguments().size(); ++p) {
      if (binding.assigned()[p] != nullptr) add(schema.arguments()[p], *binding.assigned()[p]);
    }
    std::string name = schema.name();
    if (!schema.overload_name().empty()) name += "." + schema.overload_name();
    result_.attributes.set("operator", std::move(name));
    result_.attributes.set("operands", std::move(names_));
  }

  const std::optional<std::string>& problem() const { return problem_; }

 private:
  void add(const Argument& parameter, const OperatorArgument& argument) {
    const c10::TypePtr type = without_optional(parameter.real_type());
    const bool list = type->kind() == TypeKind::ListType;
    const bool of_tensors =
        list ? without_optional(type->castRaw<c10::ListType>()->getElementType())->kind() ==
                   TypeKind::TensorType
             : type->kind() == TypeKind::TensorType;
    if (is_none(argument)) {
      result_.attributes.set(parameter.name(), graph::None{});
    } else if (of_tensors || is_operand(argument)) {
      add_operands(parameter, argument, list, of_tensors);
    } else if (const auto value = constant_of(argument)) {
      result_.attributes.set(parameter.name(), *value);
    } else {
      problem_ = cat("argument ", parameter.name(), " of ", schema_.name(), " is not a constant");
    }
  }

  void add_operands(const Argument& parameter, const OperatorArgument& argument, bool list,
                    bool of_tensors) {
    names_ += cat(names_.empty() ? "" : ",", parameter.name());
    if (!list) {
      if (!of_tensors && argument.type.kind == Type::Kind::i64 && is_shape_argument(parameter)) {
        problem_ = cat("argument ", parameter.name(), " of ", schema_.name(), " varies");
      }
      result_.operands.push_back(&argument);
      return;
    }
    if (!of_tensors)
      problem_ = cat("argument ", parameter.name(), " of ", schema_.name(), " varies");
    names_ += cat('*', argument.elements.size());
    for (const OperatorArgument& element : argument.elements) {
      result_.operands.push_back(is_none(element) ? nullptr : &element);
    }
  }

  /// An integer may decide about sizes.
  static bool is_shape_argument(const Argument& parameter) {
    const TypeKind kind = without_optional(parameter.real_type())->kind();
    return kind == TypeKind::IntType || kind == TypeKind::SymIntType;
  }

  const FunctionSchema& schema_;
  ResolvedOperator& result_;
  std::string names_;
  std::optional<std::string> problem_;
};

}  // namespace

std::optional<AttributeValue> constant_of(const OperatorArgument& argument) {
  if (argument.kind == Kind::constant) return attribute_of(argument.object.get());
  if (argument.kind == Kind::dimension) return argument.dim;
  Shape integers;
  std::vector<double> floats;
  std::vector<bool> flags;
  for (const OperatorArgument& element : argument.elements) {
    if (element.kind == Kind::dimension) {
      integers.push_back(element.dim);
      continue;
    }
    const auto value = attribute_of(element.object.get());
    if (!value) return std::nullopt;
    if (const bool* flag = std::get_if<bool>(&*value)) {
      flags.push_back(*flag);
    } else if (const int64_t* integer = std::get_if<int64_t>(&*value)) {
      integers.emplace_back(*integer);
      floats.push_back(static_cast<double>(*integer));
    } else if (const double* number = std::get_if<double>(&*value)) {
      floats.push_back(*number);
    } else {
      return std::nullopt;
    }
  }
  const size_t count = argument.elements.size();
  if (!flags.empty())
    return flags.size() == count ? std::optional<AttributeValue>(flags) : std::nullopt;
  if (integers.size() == count) return integers;
  if (floats.size() == count) return floats;
  return std::nullopt;
}

std::optional<std::string> encode(const FunctionSchema& schema, const SchemaBinding& binding,
                                  ResolvedOperator& result) {
  return Encoder(schema, binding, result).problem();
}

}  // namespace janus::torch
