// Random programs with gradients, compiled, run several times (ordinarily, then planned) and
// compared with the reference interpreter; and the steps of it, for tests of their own.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <vector>

#include "../passes/support.h"
#include "execute/program/program.h"
#include "passes/structure/copied.h"
#include "reference_library.h"

namespace janus::execute {

/// The function's result, and its gradients by its first three inputs.
inline graph::Graph with_gradients(const graph::Graph& function) {
  graph::Graph graph = passes::copied(function);
  graph::Builder builder(graph);
  std::vector<graph::Value*> operands = {graph.results().front(), builder.none()};
  operands.insert(operands.end(), graph.inputs().begin(), graph.inputs().begin() + 3);
  for (graph::Value* gradient :
       builder.append(op::gradient, operands, {{"outputs", int64_t{1}}, {"targets", int64_t{3}}})
           ->outputs)
    graph.body().results.push_back(gradient);
  return graph;
}

inline std::vector<Slot> slots_of(fake::Library& library, const std::vector<graph::Datum>& data) {
  std::vector<Slot> slots;
  for (const graph::Datum& datum : data) slots.push_back(fake::slot_of(library, datum));
  return slots;
}

inline void expect_results(std::span<const Slot> results,
                           const std::vector<graph::Datum>& expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_TRUE(graph::close(fake::datum_of(results[i]), expected[i], 1e-12))
        << "result " << i << ": " << fake::datum_of(results[i]) << ", expected " << expected[i];
}

/// Compiles `graph` and runs it five times on random data, small numbers and both truths among
/// them: each time it gives what the reference interpreter finds for `expected`, and in the end no
/// tensor is alive that was not before.
inline void expect_same_in_each_run(const graph::Graph& graph, const graph::Graph& expected,
                                    unsigned seed) {
  const int before = fake::alive();
  {
    fake::ReferenceLibrary library;
    const auto program = Program::compile(passes::copied(graph), library);
    std::mt19937 random(seed);
    for (int run = 0; run < 5; ++run) {
      SCOPED_TRACE(run);
      passes::Data data(graph, static_cast<unsigned>(random()));
      for (graph::Datum& datum : data.inputs) {
        if (std::holds_alternative<bool>(datum)) datum = random() % 2 == 0;
        if (std::holds_alternative<int64_t>(datum)) datum = static_cast<int64_t>(random() % 4);
      }
      std::vector<Slot> results(graph.results().size());
      ASSERT_FALSE(program->run(slots_of(library, data.inputs), {}, results, {}));
      expect_results(results, data.run(expected).results);
    }
    if (testing::Test::HasFailure()) ADD_FAILURE() << graph::print(graph) << program->describe();
  }
  EXPECT_EQ(fake::alive(), before);
}

}  // namespace janus::execute
