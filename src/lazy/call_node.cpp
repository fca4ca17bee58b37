#include "lazy/call_node.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "ops/structure.h"
#include "torch/tensor.h"

namespace janus::lazy {

using graph::Attributes;
using graph::AttributeValue;
using graph::Builder;
using graph::Parameter;
using graph::Shape;
using graph::Type;
using graph::Value;

namespace {

/// The values of each argument: none where it is a constant, several where it is a list. Of
/// constants that are sizes, these.
struct Argument {
  std::vector<Value*> values;
  bool is_list = false;
  Shape sizes;
};

bool is_of_sizes(const c10::IValue& value) {
  return value.isInt() || (value.isIntList() && value.toListRef().size() > 0);
}

std::vector<Argument> arguments_of(const CallKind& kind, std::span<Value* const> operands,
                                   std::span<Value* const> numbers, const Shape& sizes) {
  std::vector<Argument> made(kind.arguments.size());
  auto next = sizes.begin();
  for (size_t i = 0; i < made.size(); ++i) {
    if (!is_size(kind.rule->overload.schema().arguments()[i])) continue;
    const c10::IValue& value = kind.arguments[i];
    if (!is_of_sizes(value)) continue;
    const auto count = value.isInt() ? 1 : static_cast<ptrdiff_t>(value.toListRef().size());
    made[i].sizes.assign(next, next + count);
    next += count;
  }
  // Tensors and wrapped numbers of one list come in the order of its elements.
  std::map<OperandPlace, Value*> by_place;
  for (size_t i = 0; i < operands.size(); ++i) by_place[kind.places[i]] = operands[i];
  for (size_t i = 0; i < numbers.size(); ++i) by_place[kind.numbers[i].place] = numbers[i];
  for (const auto& [place, value] : by_place) {
    made[place.argument].values.push_back(value);
    made[place.argument].is_list |= place.element >= 0;
  }
  return made;
}

graph::DType dtype_of(at::ScalarType type) {
  const auto known = torch::dtype_of(type);
  if (!known) throw NotInGraph("graphs do not have the dtype");
  return *known;
}

AttributeValue attribute_of(const c10::IValue& value, const Argument& argument,
                            const Parameter& parameter) {
  if (value.isNone()) return graph::None{};
  if (!argument.sizes.empty() && value.isInt()) return ops::to_attribute(argument.sizes.front());
  if (!argument.sizes.empty()) return argument.sizes;
  if (parameter.kind == Parameter::Kind::dtype)
    return dtype_of(static_cast<at::ScalarType>(value.toInt()));
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return std::string(value.toStringView());
  if (value.isIntList()) {
    const auto list = value.toIntVector();
    return Shape(list.begin(), list.end());
  }
  if (value.isDoubleList()) return value.toDoubleVector();
  if (value.isBoolList()) {
    const auto list = value.toBoolList();
    return std::vector<bool>(list.begin(), list.end());
  }
  throw NotInGraph("an argument has no form in graphs");
}

/// Whether an argument that graphs ignore changes nothing: the layout of a result is its strides.
bool is_ignorable(const c10::IValue& value, const c10::Argument& argument) {
  return value.isNone() || value.isDevice() || argument.name() == "layout" ||
         argument.name() == "memory_format" || argument.name() == "pin_memory";
}

/// The argument; none where it is a size that varies.
c10::IValue constant_of(const c10::IValue& value, const Argument& argument) {
  if (argument.sizes.empty()) return value;
  c10::List<int64_t> sizes;
  for (const graph::Dim& each : argument.sizes) {
    if (!each.is_constant()) return {};
    sizes.push_back(each.value());
  }
  return value.isInt() ? c10::IValue(sizes.get(0)) : c10::IValue(std::move(sizes));
}

/// Operands and attributes for the graph's own operator; nothing if it doesn't take them.
bool bind_native(Builder& builder, const CallKind& kind, const std::vector<Argument>& arguments,
                 std::vector<Value*>& operands, Attributes& attributes) {
  const graph::Signature& signature = kind.rule->native->signature();
  const auto& schema = kind.rule->overload.schema().arguments();
  for (const Parameter& parameter : signature.parameters) {
    const auto found = std::ranges::find(schema, parameter.name, &c10::Argument::name);
    if (found == schema.end()) {
      if (!parameter.default_value && !parameter.optional) return false;
      if (!parameter.default_value) attributes.set(parameter.name, graph::None{});
      continue;
    }
    const auto i = static_cast<size_t>(found - schema.begin());
    if (parameter.kind == Parameter::Kind::ignored) continue;
    if (!parameter.is_operand()) {
      if (!arguments[i].values.empty()) return false;
      attributes.set(parameter.name, attribute_of(kind.arguments[i], arguments[i], parameter));
    } else if (!arguments[i].values.empty()) {
      operands.insert(operands.end(), arguments[i].values.begin(), arguments[i].values.end());
    } else if (kind.arguments[i].isNone() || kind.arguments[i].isTensor()) {
      operands.push_back(builder.none());
    } else if (kind.arguments[i].isDouble()) {
      operands.push_back(builder.constant(kind.arguments[i].toDouble()));
    } else if (kind.arguments[i].isInt()) {
      const auto& sizes = arguments[i].sizes;
      if (!sizes.empty() && !sizes.front().is_constant()) return false;
      operands.push_back(
          builder.constant(sizes.empty() ? kind.arguments[i].toInt() : sizes.front().value()));
    } else {
      return false;
    }
  }
  for (size_t i = 0; i < schema.size(); ++i) {
    if (signature.find(schema[i].name()) != nullptr || is_ignorable(kind.arguments[i], schema[i]))
      continue;
    const auto& by_default = schema[i].default_value();
    if (!arguments[i].values.empty() || !by_default ||
        *by_default != constant_of(kind.arguments[i], arguments[i]))
      return false;
  }
  return true;
}

/// The value with the dtype and sizes of an operand that it is written to.
Value* fitted(Builder& builder, Value* value, const Type& wanted) {
  if (!value->type.is_tensor()) throw NotInGraph("a result is no tensor");
  if (value->type.dtype != wanted.dtype)
    value = op::to(builder, {value}, {{"dtype", wanted.dtype}});
  if (value->type.shape != wanted.shape)
    value = op::expand(builder, {value}, {{"size", wanted.shape}});
  return value;
}

/// Whether values of the type can have been seen as the other one.
bool may_be(const Type& type, const Type& seen) {
  if (!type.is_tensor() || type.dtype != seen.dtype || type.rank() != seen.rank()) return false;
  for (size_t i = 0; i < type.shape.size(); ++i)
    if (type.shape[i].is_constant() && !(type.shape[i] == seen.shape[i])) return false;
  return true;
}

bool has_types(const std::vector<Value*>& values, const CallKind& kind, const CallSizes& sizes) {
  if (values.size() < kind.results.size()) return false;
  for (size_t i = 0; i < kind.results.size(); ++i) {
    if (kind.rule->result_is[i] || !kind.results[i].is_defined) continue;
    const bool fits = sizes.results[i] ? values[i]->type == *sizes.results[i]
                                       : may_be(values[i]->type, sizes.seen[i]);
    if (!fits) return false;
  }
  return true;
}

/// A batch norm that is evaluated writes to no running statistics.
bool writes_nothing(const CallKind& kind) {
  const auto index = kind.rule->overload.schema().argumentIndexWithName("training");
  return !kind.rule->unsaid.empty() && index &&
         !kind.arguments[static_cast<size_t>(*index)].toBool();
}

/// Nothing if the graph's own operator gives something else.
std::optional<std::vector<Value*>> append_native(Builder& builder, const CallKind& kind,
                                                 const std::vector<Argument>& arguments,
                                                 const CallSizes& sizes) {
  if (kind.rule->native == nullptr || writes_nothing(kind)) return std::nullopt;
  std::vector<Value*> operands;
  Attributes attributes;
  if (!bind_native(builder, kind, arguments, operands, attributes)) return std::nullopt;
  const bool makes_dtype = kind.places.empty() || kind.rule->native == &op::to;
  if (makes_dtype && attributes.has("dtype"))
    attributes.set("dtype", dtype_of(kind.results.front().geometry.dtype));
  try {
    const graph::Node* node = builder.append(*kind.rule->native, operands, attributes);
    std::vector<Value*> results = node->outputs;
    if (has_types(results, kind, sizes)) return results;
  } catch (const graph::TypeError&) {
    // A call that graphs have no operator of their own for.
  }
  return std::nullopt;
}

std::vector<Value*> append_opaque(Builder& builder, const CallKind& kind,
                                  const std::vector<Argument>& arguments, const CallSizes& sizes) {
  const OperatorRule& rule = *kind.rule;
  if (rule.is_in_place() && !rule.functional && !writes_nothing(kind))
    throw NotInGraph("it writes to its operands");
  const auto& schema = rule.functional ? rule.functional->schema() : rule.overload.schema();
  ops::OpaqueCall call{.overload = schema.name()};
  if (!schema.overload_name().empty()) call.overload += "." + schema.overload_name();
  std::vector<Type> types;
  for (size_t i = 0; i < kind.results.size(); ++i) {
    const ResultShape& result = kind.results[i];
    if (!result.is_defined) throw NotInGraph("one of its results is not defined");
    const auto& written = rule.result_is[i];
    if (!written && !sizes.results[i]) throw NotInGraph("nothing says how its result's sizes vary");
    types.push_back(written ? arguments[*written].values.front()->type : *sizes.results[i]);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (!arguments[i].values.empty()) {
      call.operands.push_back({argument.name(), arguments[i].values, arguments[i].is_list});
      continue;
    }
    const c10::IValue& value = kind.arguments[i];
    if (value.isNone() || value.isTensor() || value.isDevice()) continue;
    if (value.isTensorList()) {
      call.operands.push_back({argument.name(), {}, true});
      continue;
    }
    call.attributes.set(argument.name(), attribute_of(value, arguments[i], Parameter{}));
  }
  return ops::append_opaque(builder, call, std::move(types))->outputs;
}

}  // namespace

Type type_of(const Geometry& geometry) {
  return Type::tensor(dtype_of(geometry.dtype),
                      Shape(geometry.sizes.begin(), geometry.sizes.end()));
}

bool is_size(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
  return type->kind() == c10::TypeKind::SymIntType;
}

std::vector<int64_t> sizes_of(const CallKind& kind) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < kind.arguments.size(); ++i) {
    const c10::IValue& value = kind.arguments[i];
    if (!is_size(kind.rule->overload.schema().arguments()[i]) || !is_of_sizes(value)) continue;
    if (value.isInt()) {
      sizes.push_back(value.toInt());
    } else {
      const auto list = value.toIntVector();
      sizes.insert(sizes.end(), list.begin(), list.end());
    }
  }
  return sizes;
}

bool writes_unsaid(const CallKind& kind) {
  return !kind.rule->unsaid.empty() && !writes_nothing(kind);
}

std::vector<Value*> append_call(Builder& builder, const CallKind& kind,
                                std::span<Value* const> operands, std::span<Value* const> numbers) {
  const std::vector<int64_t> arguments = sizes_of(kind);
  CallSizes sizes{.arguments = Shape(arguments.begin(), arguments.end())};
  for (const ResultShape& result : kind.results) {
    sizes.seen.push_back(result.is_defined ? type_of(result.geometry) : Type::none());
    sizes.results.emplace_back(sizes.seen.back());
  }
  return append_call(builder, kind, operands, numbers, sizes);
}

std::vector<Value*> append_call(Builder& builder, const CallKind& kind,
                                std::span<Value* const> operands, std::span<Value* const> numbers,
                                const CallSizes& sizes) {
  const std::vector<Argument> arguments = arguments_of(kind, operands, numbers, sizes.arguments);
  auto results = append_native(builder, kind, arguments, sizes);
  if (!results) results = append_opaque(builder, kind, arguments, sizes);
  for (size_t i = 0; i < kind.results.size(); ++i)
    if (const auto& written = kind.rule->result_is[i])
      (*results)[i] = fitted(builder, (*results)[i], arguments[*written].values.front()->type);
  return std::move(*results);
}

}  // namespace janus::lazy
