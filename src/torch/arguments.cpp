// Operands and attributes of a node, converted to what an ATen schema asks for.
#include "torch/arguments.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>

#include "graph/op.h"
#include "ops/list.h"
#include "ops/structure.h"
#include "torch/tensor.h"

namespace janus::torch {

using c10::Argument;
using c10::IValue;
using c10::TypeKind;
using execute::Slot;
using graph::AttributeValue;
using graph::Dim;
using graph::DType;
using graph::Node;
using graph::Parameter;
using graph::Shape;

namespace {

/// The type of an argument without its `?`.
c10::TypePtr plain_type(const Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type;
}

/// Of a list: the type of its elements; else the type itself.
TypeKind element_kind(const c10::TypePtr& type) {
  auto list = type->cast<c10::ListType>();
  return (list ? list->getElementType() : type)->kind();
}

int64_t evaluated(const Dim& dim, const execute::SymbolLookup& symbols) {
  const auto value = dim.evaluate(symbols);
  TORCHJANUS_CHECK(value, "constant_argument: ", graph::to_string(dim), " has no value");
  return *value;
}

IValue integer_argument(int64_t value, const Argument& argument) {
  const c10::TypePtr type = plain_type(argument);
  switch (type->kind()) {
    case TypeKind::FloatType:
      return static_cast<double>(value);
    case TypeKind::BoolType:
      return value != 0;
    case TypeKind::ListType: {
      if (element_kind(type) == TypeKind::FloatType) {
        return c10::List<double>({static_cast<double>(value)});
      }
      const size_t length = static_cast<size_t>(argument.N().value_or(1));
      return std::vector<int64_t>(length, value);
    }
    default:
      return value;
  }
}

IValue string_argument(const std::string& text, const Argument& argument) {
  switch (plain_type(argument)->kind()) {
    case TypeKind::DeviceObjType:
      return c10::Device(text);
    case TypeKind::MemoryFormatType: {
      if (text.ends_with("contiguous_format")) return c10::MemoryFormat::Contiguous;
      if (text.ends_with("preserve_format")) return c10::MemoryFormat::Preserve;
      if (text.ends_with("channels_last")) return c10::MemoryFormat::ChannelsLast;
      if (text.ends_with("channels_last_3d")) return c10::MemoryFormat::ChannelsLast3d;
      TORCHJANUS_CHECK(false, "constant_argument: unknown memory format ", text);
    }
    case TypeKind::LayoutType:
      TORCHJANUS_CHECK(text.ends_with("strided"), "constant_argument: unknown layout ", text);
      return c10::Layout::Strided;
    default:
      return text;
  }
}

IValue list_argument(const Shape& shape, const Argument& argument,
                     const execute::SymbolLookup& symbols) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : shape) numbers.push_back(evaluated(dim, symbols));
  switch (element_kind(plain_type(argument))) {
    case TypeKind::FloatType:
      return std::vector<double>(numbers.begin(), numbers.end());
    case TypeKind::BoolType: {
      c10::List<bool> flags;
      for (int64_t number : numbers) flags.push_back(number != 0);
      return flags;
    }
    default:
      return numbers;
  }
}

ArgumentSource::Number wanted_number(TypeKind kind) {
  switch (kind) {
    case TypeKind::FloatType:
      return ArgumentSource::Number::floating;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return ArgumentSource::Number::integer;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return ArgumentSource::Number::boolean;
    default:
      return ArgumentSource::Number::scalar;
  }
}

/// An argument that takes `count` operands, from `first` on.
ArgumentSource operand_source(const Argument& argument, size_t first, size_t count, bool is_list) {
  ArgumentSource source;
  source.first = first;
  source.count = count;
  const c10::TypePtr type = plain_type(argument);
  if (is_list) {
    auto list = type->cast<c10::ListType>();
    TORCHJANUS_CHECK(list, "argument ", argument.name(), " is not a list");
    const c10::TypePtr element = list->getElementType();
    if (element->kind() == TypeKind::TensorType) {
      source.kind = ArgumentSource::Kind::tensor_list;
    } else if (element->kind() == TypeKind::OptionalType) {
      source.kind = ArgumentSource::Kind::optional_tensor_list;
    } else {
      source.kind = ArgumentSource::Kind::number_list;
      source.number = wanted_number(element->kind());
    }
    return source;
  }
  if (type->kind() == TypeKind::TensorType) {
    source.kind = ArgumentSource::Kind::tensor;
  } else {
    source.kind = ArgumentSource::Kind::number;
    source.number = wanted_number(type->kind());
  }
  return source;
}

ArgumentSource constant_source(IValue value) {
  ArgumentSource source;
  source.value = std::move(value);
  return source;
}

ArgumentSource default_source(const Argument& argument, const c10::FunctionSchema& schema) {
  if (argument.default_value()) return constant_source(*argument.default_value());
  TORCHJANUS_CHECK(argument.type()->kind() == TypeKind::OptionalType, schema.name(), ": argument ",
                   argument.name(), " is missing");
  return constant_source(IValue());
}

std::vector<ArgumentSource> opaque_sources(const Node& node, const c10::FunctionSchema& schema,
                                           const execute::SymbolLookup& symbols) {
  const ops::OpaqueCall call = ops::opaque_call(node.attributes, node.inputs);
  std::vector<ArgumentSource> sources;
  for (const Argument& argument : schema.arguments()) {
    size_t first = 0;
    const auto operand =
        std::find_if(call.operands.begin(), call.operands.end(), [&](const auto& o) {
          if (o.name == argument.name()) return true;
          first += o.values.size();
          return false;
        });
    const AttributeValue* attribute = call.attributes.find(argument.name());
    if (operand != call.operands.end()) {
      sources.push_back(operand_source(argument, first, operand->values.size(), operand->is_list));
    } else if (attribute != nullptr) {
      sources.push_back(constant_source(constant_argument(*attribute, argument, symbols)));
    } else {
      sources.push_back(default_source(argument, schema));
    }
  }
  return sources;
}

}  // namespace

IValue constant_argument(const AttributeValue& value, const Argument& argument,
                         const execute::SymbolLookup& symbols) {
  if (std::holds_alternative<graph::None>(value)) return {};
  if (const bool* flag = std::get_if<bool>(&value)) {
    if (plain_type(argument)->kind() == TypeKind::ListType) return c10::List<bool>({*flag});
    return *flag;
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    return integer_argument(*number, argument);
  }
  if (const double* number = std::get_if<double>(&value)) {
    if (plain_type(argument)->kind() == TypeKind::ListType) return c10::List<double>({*number});
    return *number;
  }
  if (const std::string* text = std::get_if<std::string>(&value)) {
    return string_argument(*text, argument);
  }
  if (const DType* dtype = std::get_if<DType>(&value)) return scalar_type(*dtype);
  if (const Dim* dim = std::get_if<Dim>(&value)) {
    return integer_argument(evaluated(*dim, symbols), argument);
  }
  if (const Shape* shape = std::get_if<Shape>(&value)) {
    return list_argument(*shape, argument, symbols);
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) return *numbers;
  c10::List<bool> flags;
  for (const bool flag : std::get<std::vector<bool>>(value)) flags.push_back(flag);
  return flags;
}

IValue number_argument(const Slot& slot, ArgumentSource::Number wanted) {
  const auto as = [wanted](auto value) -> IValue {
    switch (wanted) {
      case ArgumentSource::Number::floating:
        return static_cast<double>(value);
      case ArgumentSource::Number::integer:
        return static_cast<int64_t>(value);
      case ArgumentSource::Number::boolean:
        return value != 0;
      case ArgumentSource::Number::scalar:
        break;
    }
    return value;
  };
  switch (slot.kind()) {
    case Slot::Kind::none:
      return {};
    case Slot::Kind::boolean:
      return wanted == ArgumentSource::Number::scalar ? IValue(slot.boolean())
                                                      : as(int64_t{slot.boolean()});
    case Slot::Kind::i64:
      return as(slot.i64());
    case Slot::Kind::f64:
      return as(slot.f64());
    default:
      TORCHJANUS_CHECK(false, "number_argument: the operand is no number");
  }
}

at::Tensor wrapped_number(const Slot& slot) {
  at::ScalarType type = at::kDouble;
  if (slot.kind() == Slot::Kind::boolean) type = at::kBool;
  if (slot.kind() == Slot::Kind::i64) type = at::kLong;
  const IValue number = number_argument(slot, ArgumentSource::Number::scalar);
  at::Tensor tensor = at::scalar_tensor(number.toScalar(), at::TensorOptions(type));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

namespace {

at::Tensor tensor_operand(const Slot& slot) {
  return slot.is_tensor() ? tensor_of(slot) : wrapped_number(slot);
}

}  // namespace

IValue operand_argument(const ArgumentSource& source, const execute::Operands& operands) {
  switch (source.kind) {
    case ArgumentSource::Kind::constant:
      return source.value;
    case ArgumentSource::Kind::tensor:
      if (operands.in(source.first).is_none()) return {};
      return tensor_operand(operands.in(source.first));
    case ArgumentSource::Kind::number:
      return number_argument(operands.in(source.first), source.number);
    case ArgumentSource::Kind::tensor_list: {
      c10::List<at::Tensor> list;
      list.reserve(source.count);
      for (size_t i = 0; i < source.count; ++i) {
        list.push_back(tensor_operand(operands.in(source.first + i)));
      }
      return list;
    }
    case ArgumentSource::Kind::optional_tensor_list: {
      c10::List<std::optional<at::Tensor>> list;
      for (size_t i = 0; i < source.count; ++i) {
        const Slot& slot = operands.in(source.first + i);
        list.push_back(slot.is_none() ? std::optional<at::Tensor>() : tensor_operand(slot));
      }
      return list;
    }
    case ArgumentSource::Kind::number_list: {
      c10::List<int64_t> integers;
      c10::List<double> floats;
      for (size_t i = 0; i < source.count; ++i) {
        const IValue number = number_argument(operands.in(source.first + i), source.number);
        if (source.number == ArgumentSource::Number::floating) {
          floats.push_back(number.toDouble());
        } else {
          integers.push_back(number.toInt());
        }
      }
      if (source.number == ArgumentSource::Number::floating) return floats;
      return integers;
    }
  }
  TORCHJANUS_CHECK(false, "operand_argument: unknown kind");
}

std::vector<ArgumentSource> argument_sources(const Node& node, const c10::FunctionSchema& schema,
                                             const execute::SymbolLookup& symbols) {
  if (node.op == &op::opaque || node.op == &op::opaque_backward) {
    return opaque_sources(node, schema, symbols);
  }
  const auto& parameters = node.op->signature().parameters;
  size_t single_operands = 0;
  for (const Parameter& parameter : parameters) {
    single_operands += parameter.is_operand() && parameter.kind != Parameter::Kind::tensor_list;
  }
  std::vector<ArgumentSource> sources;
  size_t next = 0;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    if (i >= parameters.size() || parameters[i].kind == Parameter::Kind::ignored) {
      sources.push_back(default_source(argument, schema));
    } else if (parameters[i].is_operand()) {
      const bool is_list = parameters[i].kind == Parameter::Kind::tensor_list;
      const size_t count = is_list ? node.inputs.size() - single_operands : 1;
      sources.push_back(operand_source(argument, next, count, is_list));
      next += count;
    } else {
      const AttributeValue* value = node.attributes.find(parameters[i].name);
      sources.push_back(value == nullptr
                            ? default_source(argument, schema)
                            : constant_source(constant_argument(*value, argument, symbols)));
    }
  }
  return sources;
}

}  // namespace janus::torch
