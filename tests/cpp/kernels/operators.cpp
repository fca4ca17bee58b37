#include "operators.h"

#include <algorithm>
#include <array>

namespace janus::kernels::testing_ops {

using graph::ScalarCode;
using graph::Trait;
using Scalar = ScalarCode::Scalar;
using Compare = ScalarCode::Compare;

namespace {

constexpr Trait kTraits = Trait::pure | Trait::elementwise;

constexpr OpDef make(std::string_view name, Scalar (*scalar)(ScalarCode&)) {
  return {.name = name, .schema = "(Tensor a) -> Tensor", .traits = kTraits, .scalar = scalar};
}

const OpDef fused_op{.name = "fused", .schema = "(Tensor[] inputs) -> Tensor[]"};
const OpDef constant_op{
    .name = "constant", .schema = "() -> Scalar", .role = graph::Role::constant};

std::string function_of(ScalarCode& k) { return k.node().attributes.get<std::string>("function"); }

}  // namespace

const OpDef add = make("add", [](ScalarCode& k) { return k.add(k.input(0), k.input(1)); });
const OpDef sub = make("sub", [](ScalarCode& k) { return k.sub(k.input(0), k.input(1)); });
const OpDef mul = make("mul", [](ScalarCode& k) { return k.mul(k.input(0), k.input(1)); });
const OpDef div = make("div", [](ScalarCode& k) { return k.div(k.input(0), k.input(1)); });
const OpDef maximum = make("maximum", [](ScalarCode& k) {
  const Scalar a = k.input(0), b = k.input(1);
  const Scalar larger = k.select(k.compare(Compare::gt, a, b), a, b);
  return k.select(k.compare(Compare::ne, a, a), a, larger);
});
const OpDef neg = make("neg", [](ScalarCode& k) { return k.neg(k.input(0)); });
const OpDef sqrt = make("sqrt", [](ScalarCode& k) { return k.call("sqrt", k.input(0)); });
const OpDef floor = make("floor", [](ScalarCode& k) { return k.call("floor", k.input(0)); });
const OpDef half_of = make(
    "half_of", [](ScalarCode& k) { return k.div(k.input(0), k.constant(2, k.compute_type())); });
const OpDef remainder_by_7 = make("remainder_by_7", [](ScalarCode& k) {
  return k.rem(k.input(0), k.constant(7, k.compute_type()));
});
const OpDef lt =
    make("lt", [](ScalarCode& k) { return k.compare(Compare::lt, k.input(0), k.input(1)); });
const OpDef eq =
    make("eq", [](ScalarCode& k) { return k.compare(Compare::eq, k.input(0), k.input(1)); });
const OpDef ne =
    make("ne", [](ScalarCode& k) { return k.compare(Compare::ne, k.input(0), k.input(1)); });
const OpDef where =
    make("where", [](ScalarCode& k) { return k.select(k.raw_input(0), k.input(1), k.input(2)); });
const OpDef bit_and =
    make("bit_and", [](ScalarCode& k) { return k.bit_and(k.input(0), k.input(1)); });
const OpDef bit_or = make("bit_or", [](ScalarCode& k) { return k.bit_or(k.input(0), k.input(1)); });
const OpDef bit_xor =
    make("bit_xor", [](ScalarCode& k) { return k.bit_xor(k.input(0), k.input(1)); });
const OpDef to = make("to", [](ScalarCode& k) { return k.raw_input(0); });
const OpDef invert_bool = make("invert_bool", [](ScalarCode& k) {
  return k.bit_xor(k.convert(k.raw_input(0), DType::b1), k.constant(1, DType::b1));
});
const OpDef opaque = make("opaque", nullptr);
const OpDef unknown_function =
    make("unknown_function", [](ScalarCode& k) { return k.call("no_such_function", k.input(0)); });
const OpDef integer_divide =
    make("integer_divide", [](ScalarCode& k) { return k.div(k.input(0), k.input(1)); });
const OpDef call1 = make("call1", [](ScalarCode& k) { return k.call(function_of(k), k.input(0)); });
const OpDef call2 = make("call2", [](ScalarCode& k) {
  return k.call(function_of(k), std::array{k.input(0), k.input(1)});
});

Fused::Fused() : node_(graph_.new_node(fused_op)) {
  node_->add_block();
  graph_.append(graph_.body(), node_);
}

graph::Value* Fused::tensor(DType dtype, graph::Shape shape) {
  const graph::Type type = graph::Type::tensor(dtype, std::move(shape));
  node_->inputs.push_back(graph_.new_parameter(graph_.body(), type));
  return graph_.new_parameter(*node_->blocks.front(), type);
}

graph::Value* Fused::number(graph::Type::Kind kind) {
  graph::Type type;
  type.kind = kind;
  node_->inputs.push_back(graph_.new_parameter(graph_.body(), type));
  return graph_.new_parameter(*node_->blocks.front(), type);
}

graph::Value* Fused::constant(graph::AttributeValue value) {
  graph::Node* node = graph_.new_node(constant_op);
  const graph::Type type = std::holds_alternative<int64_t>(value)  ? graph::Type::i64()
                           : std::holds_alternative<bool>(value)   ? graph::Type::boolean()
                           : std::holds_alternative<double>(value) ? graph::Type::f64()
                                                                   : graph::Type::none();
  node->attributes.set("value", std::move(value));
  node->outputs.push_back(graph_.new_value(type));
  node->outputs.front()->definition = node;
  graph_.append(*node_->blocks.front(), node);
  return node->outputs.front();
}

graph::Value* Fused::apply(const OpDef& op, std::span<graph::Value* const> inputs, DType dtype,
                           graph::Attributes attributes) {
  graph::Node* node = graph_.new_node(op);
  node->inputs.assign(inputs.begin(), inputs.end());
  node->attributes = std::move(attributes);
  graph::Shape shape;
  for (const graph::Value* input : inputs) {
    const graph::Shape& other = input->type.shape;
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (size_t i = 0; i < other.size(); ++i) {
      graph::Dim& dim = shape[shape.size() - other.size() + i];
      if (dim.is(1)) dim = other[i];
    }
  }
  node->outputs.push_back(graph_.new_value(graph::Type::tensor(dtype, shape)));
  node->outputs.front()->definition = node;
  graph_.append(*node_->blocks.front(), node);
  return node->outputs.front();
}

const graph::Node& Fused::finish(std::vector<graph::Value*> results) {
  for (graph::Value* result : results) {
    node_->outputs.push_back(graph_.new_value(result->type));
    node_->outputs.back()->definition = node_;
  }
  node_->blocks.front()->results = std::move(results);
  return *node_;
}

}  // namespace janus::kernels::testing_ops
