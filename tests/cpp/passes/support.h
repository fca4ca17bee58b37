// What tests of passes share: graphs from text, random data for a graph's inputs and cells, runs by
// the reference interpreter.
#pragma once

#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "graph/interpreter.h"
#include "graph/text.h"
#include "ops/list.h"
#include "ops/reference.h"

namespace janus::passes {

inline graph::Graph parsed(std::string_view text) { return graph::parse(text, ops::table()); }

/// The input or result of a node of the body with that name; null if there is none.
inline graph::Value* value_named(const graph::Graph& graph, std::string_view name) {
  for (graph::Value* input : graph.inputs())
    if (input->name == name) return input;
  for (const graph::Node* node : graph.body().nodes)
    for (graph::Value* output : node->outputs)
      if (output->name == name) return output;
  return nullptr;
}

/// Numbers for inputs, cells and dimensions. The same seed gives the same numbers.
class Data {
 public:
  explicit Data(const graph::Graph& graph, unsigned seed = 1, int64_t dimension = 3)
      : random_(seed), dimension_(dimension) {
    for (const graph::Value* input : graph.inputs()) inputs.push_back(datum(input->type));
    graph::for_each_node(graph.body(), [&](const graph::Node& node) {
      if (node.op != &op::state) return;
      const auto& cell = node.attributes.get<std::string>("cell");
      if (!cells.contains(cell)) cells.emplace(cell, datum(node.output()->type));
    });
  }

  graph::Outcome run(const graph::Graph& graph) const {
    return graph::interpret(graph, inputs, cells, ops::reference());
  }

  graph::Datum datum(const graph::Type& type) {
    if (type.kind == graph::Type::Kind::f64) return number();
    if (type.kind == graph::Type::Kind::i64) return int64_t{2};
    if (type.kind == graph::Type::Kind::boolean) return true;
    std::vector<int64_t> sizes;
    for (const graph::Dim& dim : type.shape)
      sizes.push_back(*dim.evaluate([&](const std::string&) { return dimension_; }));
    graph::DenseTensor tensor(type.dtype, sizes);
    for (graph::Number& element : tensor.elements)
      element =
          graph::rounded(graph::is_floating(type.dtype)
                             ? graph::Number::of(number(), type.dtype)
                             : graph::Number::of(static_cast<int64_t>(random_() % 2), type.dtype),
                         type.dtype);
    return tensor;
  }

  std::vector<graph::Datum> inputs;
  std::map<std::string, graph::Datum> cells;

 private:
  /// Away from zero, where many functions are not smooth.
  double number() {
    const double magnitude = std::uniform_real_distribution<double>(0.25, 1.5)(random_);
    return random_() % 2 == 0 ? magnitude : -magnitude;
  }

  std::mt19937 random_;
  int64_t dimension_;
};

}  // namespace janus::passes
