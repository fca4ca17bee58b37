// The gradient rule of every operator that can be applied to f64 tensors without further knowledge,
// against finite differences of the reference interpreter.
#include <gtest/gtest.h>

#include "../support.h"
#include "base/check.h"
#include "graph/builder.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"

namespace janus::passes {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::OpDef;
using graph::Parameter;
using graph::Shape;
using graph::Type;
using graph::Value;

/// A graph that applies `op` to inputs of that shape and gives a loss and its gradients; the last
/// input weighs the result's elements. Throws TypeError if the operator does not take that.
Graph gradient_graph(const OpDef& op, const Shape& shape) {
  Graph graph{std::string(op.name)};
  Builder builder(graph);
  std::vector<Value*> operands, targets;
  graph::Attributes attributes;
  for (const Parameter& parameter : op.signature().parameters) {
    if (parameter.kind == Parameter::Kind::tensor && !parameter.optional) {
      targets.push_back(builder.input(Type::tensor(DType::f64, shape), parameter.name));
      operands.push_back(targets.back());
    } else if (parameter.is_operand()) {
      if (parameter.kind == Parameter::Kind::tensor_list || parameter.default_value) break;
      operands.push_back(parameter.optional ? builder.none() : builder.constant(0.6));
    } else if (parameter.kind == Parameter::Kind::integer && !parameter.default_value) {
      attributes.set(parameter.name, int64_t{1});
    } else if (parameter.kind == Parameter::Kind::integer_list && !parameter.default_value) {
      attributes.set(parameter.name, Shape{1, 0});
    }
  }
  const graph::Node* node = builder.append(op, operands, attributes);
  Value* result = node->output();
  if (!result->type.is_tensor() || result->type.dtype != DType::f64)
    throw graph::TypeError("not of floating dtype");
  Value* weights = builder.input(result->type, "weights");
  Value* loss = op::sum(builder, {op::mul(builder, {result, weights})});
  std::vector<Value*> inputs = {loss, builder.none()};
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  const auto* gradients =
      builder.append(op::gradient, inputs,
                     {{"outputs", int64_t{1}}, {"targets", static_cast<int64_t>(targets.size())}});
  graph.body().results = {loss};
  for (Value* gradient : gradients->outputs) graph.body().results.push_back(gradient);
  return decompose(differentiate(decompose(graph)));
}

/// Positive, below one (or above, for acosh), no two alike: where most functions are smooth.
Data smooth_data(const Graph& graph, const OpDef& op) {
  Data data(graph);
  double next = 0.31;
  for (size_t input = 0; input < data.inputs.size(); ++input) {
    auto& tensor = std::get<graph::DenseTensor>(data.inputs[input]);
    for (graph::Number& element : tensor.elements) {
      element.real = next + (&op == &op::acosh ? 1.0 : 0.0);
      next = next > 0.8 ? next - 0.5 : next + 0.037;
    }
  }
  return data;
}

double loss_after(const Graph& graph, Data data, size_t input, size_t element, double step) {
  std::get<graph::DenseTensor>(data.inputs[input]).elements[element].real += step;
  return std::get<graph::DenseTensor>(data.run(graph).results[0]).at(0);
}

void check(const Graph& graph, const Data& data, const graph::Outcome& outcome) {
  constexpr double kStep = 1e-6;
  for (size_t input = 0; input + 1 < outcome.results.size(); ++input) {
    const auto& gradient = std::get<graph::DenseTensor>(outcome.results[input + 1]);
    for (size_t element = 0; element < gradient.elements.size(); ++element) {
      const double up = loss_after(graph, data, input, element, kStep);
      const double down = loss_after(graph, data, input, element, -kStep);
      ASSERT_NEAR(gradient.at(element), (up - down) / (2 * kStep), 2e-5)
          << "input " << input << ", element " << element << " of\n"
          << graph::print(graph);
    }
  }
}

/// Whether the operator could be tried with inputs of that shape.
bool try_operator(const OpDef& op, const Shape& shape) {
  try {
    const Graph graph = gradient_graph(op, shape);
    const Data data = smooth_data(graph, op);
    const graph::Outcome outcome = data.run(graph);
    if (!outcome.ok()) return false;
    check(graph, data, outcome);
    return true;
  } catch (const graph::TypeError&) {
    return false;  // does not take such operands
  } catch (const InternalError&) {
    // The interpreter has no reference for this operator, or for one that its gradient uses.
    return false;
  }
}

/// Whether any operands of fitting types make sense. Parts of gradients need operands that belong
/// together.
bool can_be_tried(const OpDef& op) {
  if ((op.vjp == nullptr && op.decompose == nullptr) || op.signature().free_form) return false;
  return &op != &op::detach && op.name.find("backward") == std::string_view::npos;
}

TEST(OperatorGradients, AgreeWithFiniteDifferences) {
  const std::vector<Shape> shapes = {{2, 3}, {3, 3}, {4}, {2, 3, 3}, {2, 2, 4, 4}};
  size_t checked = 0;
  std::string unchecked;
  for (const OpDef* op : ops::all()) {
    if (!can_be_tried(*op)) continue;
    bool any = false;
    for (const Shape& shape : shapes) any |= try_operator(*op, shape);
    checked += any ? 1 : 0;
    if (!any) unchecked += cat(unchecked.empty() ? "" : " ", op->name);
    if (HasFatalFailure()) FAIL() << op->name;
  }
  RecordProperty("checked", static_cast<int>(checked));
  RecordProperty("unchecked", unchecked);
  EXPECT_GE(checked, 90U) << "not checked: " << unchecked;
}

}  // namespace
}  // namespace janus::passes
