#include "graph/constant.h"

namespace janus {
namespace {

using namespace graph;

std::vector<Type> infer_constant(const Infer& infer) {
  const AttributeValue* value = infer.attributes.find("value");
  if (value == nullptr || !infer.inputs.empty())
    infer.fail("expected no operand and an attribute named value");
  if (std::holds_alternative<None>(*value)) return {Type::none()};
  if (std::holds_alternative<bool>(*value)) return {Type::boolean()};
  if (std::holds_alternative<int64_t>(*value)) return {Type::i64()};
  if (std::holds_alternative<double>(*value)) return {Type::f64()};
  if (std::holds_alternative<std::string>(*value)) return {Type::str()};
  infer.fail(cat("expected a number, flag, string or none, got ", *value));
}

}  // namespace

constinit const OpDef op::constant{
    .name = "constant",
    .doc = "A number, flag, string or None that is known when the graph is made.",
    .schema = "",
    .traits = Trait::pure | Trait::no_gradient,
    .role = Role::constant,
    .computed_by = ComputedBy::executor,
    .raises = Raises::not_for_contents,
    .infer = infer_constant,
};

namespace graph {

const AttributeValue* constant_value(const Value* value) {
  const Node* node = value->definition;
  return node != nullptr && node->op == &op::constant ? node->attributes.find("value") : nullptr;
}

std::optional<int64_t> constant_integer(const Value* value) {
  const AttributeValue* known = constant_value(value);
  if (known == nullptr) return std::nullopt;
  if (const bool* flag = std::get_if<bool>(known)) return *flag ? 1 : 0;
  if (const int64_t* number = std::get_if<int64_t>(known)) return *number;
  return std::nullopt;
}

std::optional<double> constant_number(const Value* value) {
  if (const auto integer = constant_integer(value)) return static_cast<double>(*integer);
  const AttributeValue* known = constant_value(value);
  const double* number = known == nullptr ? nullptr : std::get_if<double>(known);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

}  // namespace graph
}  // namespace janus
