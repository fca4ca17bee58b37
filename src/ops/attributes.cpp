#include "ops/attributes.h"

namespace janus::ops {

using namespace graph;

namespace {

[[noreturn]] void wrong_kind(std::string_view name, std::string_view expected) {
  throw TypeError(cat("attribute ", name, " must be ", expected));
}

const AttributeValue& required(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.find(name);
  TORCHJANUS_CHECK(value != nullptr, "attribute ", name, " is missing");
  return *value;
}

template <class T>
const T& typed(const Attributes& attributes, std::string_view name, std::string_view expected) {
  const T* value = std::get_if<T>(&required(attributes, name));
  if (value == nullptr) wrong_kind(name, expected);
  return *value;
}

}  // namespace

Dim dim_attribute(const Attributes& attributes, std::string_view name) {
  const AttributeValue& value = required(attributes, name);
  if (const auto* number = std::get_if<int64_t>(&value)) return Dim(*number);
  if (const auto* dim = std::get_if<Dim>(&value)) return *dim;
  wrong_kind(name, "an integer");
}

int64_t integer_attribute(const Attributes& attributes, std::string_view name) {
  const Dim dim = dim_attribute(attributes, name);
  if (!dim.is_constant()) wrong_kind(name, "a known integer");
  return dim.value();
}

bool flag_attribute(const Attributes& attributes, std::string_view name) {
  return typed<bool>(attributes, name, "a boolean");
}

std::string text_attribute(const Attributes& attributes, std::string_view name) {
  return typed<std::string>(attributes, name, "a string");
}

std::optional<DType> dtype_attribute(const Attributes& attributes, std::string_view name) {
  if (attributes.is_none(name)) return std::nullopt;
  return typed<DType>(attributes, name, "a dtype");
}

Shape list_attribute(const Attributes& attributes, std::string_view name) {
  const AttributeValue& value = required(attributes, name);
  if (const auto* list = std::get_if<Shape>(&value)) return *list;
  if (const auto* number = std::get_if<int64_t>(&value)) return {Dim(*number)};
  if (const auto* dim = std::get_if<Dim>(&value)) return {*dim};
  wrong_kind(name, "a list of integers");
}

Shape list_attribute(const Attributes& attributes, std::string_view name, size_t count) {
  Shape list = list_attribute(attributes, name);
  if (list.size() == 1) list.resize(count, Dim(list.front()));
  if (!list.empty() && list.size() != count)
    wrong_kind(name, cat("one integer or a list of ", count));
  return list;
}

std::vector<bool> mask_attribute(const Attributes& attributes, std::string_view name) {
  return typed<std::vector<bool>>(attributes, name, "a list of booleans");
}

AttributeValue to_attribute(const Dim& dim) {
  if (dim.is_constant()) return dim.value();
  return dim;
}

bool is_constant(const Value* value, double number) {
  const std::optional<double> constant = constant_number(value);
  return constant.has_value() && *constant == number;
}

}  // namespace janus::ops
