// What holds for every graph.
#include <gtest/gtest.h>

#include "graph/interpreter.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "ops/list.h"
#include "ops/reference.h"
#include "random_graph.h"

namespace janus::graph {
namespace {

constexpr unsigned count = 400;

Graph random_graph(unsigned seed) { return RandomGraph(seed).build(static_cast<int>(seed % 15)); }

std::vector<Datum> data_for(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Datum> data;
  for (const Value* input : graph.inputs()) {
    if (input->type.kind == Type::Kind::boolean) {
      data.emplace_back(random() % 2 == 0);
    } else if (input->type.kind == Type::Kind::i64) {
      data.emplace_back(int64_t{3});
    } else {
      std::vector<int64_t> sizes;
      for (const Dim& dim : input->type.shape)
        sizes.push_back(*dim.evaluate([](const std::string&) { return 3; }));
      DenseTensor tensor(DType::f32, sizes);
      for (Number& element : tensor.elements)
        element = Number::of(static_cast<double>(random() % 200) / 50 - 2, DType::f32);
      data.emplace_back(std::move(tensor));
    }
  }
  return data;
}

TEST(RandomGraphs, verify_and_read_back) {
  for (unsigned seed = 0; seed < count; ++seed) {
    const Graph graph = random_graph(seed);
    const std::string text = print(graph);
    ASSERT_NO_THROW(verify(graph)) << text;
    const Graph again = parse(text, ops::table());
    ASSERT_NO_THROW(verify(again)) << text;
    ASSERT_EQ(print(again), text);
  }
}

TEST(RandomGraphs, are_what_the_rewriter_copies) {
  for (unsigned seed = 0; seed < count; ++seed) {
    const Graph graph = random_graph(seed);
    Rewriter rewriter(graph);
    rewriter.run([](const Node&) { return false; });
    const Graph copy = rewriter.finish();
    ASSERT_NO_THROW(verify(copy));
    ASSERT_EQ(print(copy), print(graph));
  }
}

TEST(RandomGraphs, compute_the_same_when_read_back) {
  for (unsigned seed = 0; seed < count; ++seed) {
    const Graph graph = random_graph(seed);
    const Graph again = parse(print(graph), ops::table());
    const auto data = data_for(graph, seed);
    const Outcome a = interpret(graph, data, {}, ops::reference());
    const Outcome b = interpret(again, data, {}, ops::reference());
    ASSERT_EQ(a.results.size(), b.results.size());
    for (size_t i = 0; i < a.results.size(); ++i)
      ASSERT_TRUE(identical(a.results[i], b.results[i])) << print(graph);
  }
}

}  // namespace
}  // namespace janus::graph
