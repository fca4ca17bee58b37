// What holds for every graph: no pass changes what is computed, to the bit.
#include <gtest/gtest.h>

#include <ctime>

#include "../random_program.h"
#include "../support.h"
#include "graph/builder.h"
#include "ops/reference.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/registry.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Shape;
using graph::Type;
using graph::Value;

/// Builds random well-typed graphs: arithmetic that broadcasts, views, reductions, numbers, state,
/// guards and gradients.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed), graph_("random"), builder_(graph_) {}

  Graph build(size_t size) {
    for (size_t i = 0; i < 3; ++i)
      pool_.push_back(builder_.input(Type::tensor(DType::f32, shape()), cat("x", i)));
    numbers_.push_back(builder_.input(Type::f64(), "n"));
    for (size_t i = 0; i < 3; ++i) add_state(cat("cell", i));
    while (pool_.size() < size + 6) try_to_add_node();
    add_gradient();
    add_writes();
    for (size_t i = 0; i < 3; ++i) graph_.body().results.push_back(pool_[pool_.size() - 1 - i]);
    return std::move(graph_);
  }

 private:
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  Value* any() { return pool_[pick(2) == 0 ? pool_.size() - 1 - pick(3) : pick(pool_.size())]; }
  Shape shape() {
    static const std::vector<Shape> shapes = {
        {}, {3}, {2, 3}, {2, 1}, {graph::Dim::symbol("B"), 3}};
    return shapes[pick(4)];
  }

  void add_state(const std::string& cell) {
    pool_.push_back(builder_
                        .append_unchecked(op::state, std::span<Value* const>(), {{"cell", cell}},
                                          {Type::tensor(DType::f32, shape())})
                        ->output());
    states_.push_back(pool_.back());
  }

  /// Operands whose shapes do not fit each other are drawn again.
  void try_to_add_node() {
    try {
      add_node();
    } catch (const graph::TypeError&) {
    }
  }

  void add_node() {
    static const graph::OpDef* const unary[] = {&op::neg, &op::tanh, &op::sigmoid, &op::relu,
                                                &op::abs};
    static const graph::OpDef* const binary[] = {&op::add, &op::sub, &op::mul, &op::maximum};
    switch (pick(10)) {
      case 0:
      case 1:
      case 2:
        return add((*unary[pick(std::size(unary))])(builder_, {any()}));
      case 3:
        return add(op::mul(builder_, {any(), numbers_[pick(numbers_.size())]}));
      case 4:
        return add_reduction();
      case 5:
        return add_view();
      case 6:
        return add_constant();
      default:
        return add((*binary[pick(std::size(binary))])(builder_, {any(), any()}));
    }
  }

  void add(Value* value) { pool_.push_back(value); }

  void add_reduction() {
    Value* operand = any();
    if (operand->type.rank() == 0) return add(op::detach(builder_, {operand}));
    add(op::sum(builder_, {operand}, {{"dim", Shape{0}}, {"keepdim", pick(2) == 0}}));
  }

  void add_view() {
    Value* operand = any();
    if (operand->type.rank() != 2)
      return add(op::unsqueeze(builder_, {operand}, {{"dim", int64_t{0}}}));
    add(op::transpose(builder_, {operand}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}}));
    // Transposed once it rarely fits anything: back again, too.
    add(op::transpose(builder_, {pool_.back()}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}}));
  }

  void add_constant() {
    static const double values[] = {0.0, -0.0, 1.0, 2.5};
    numbers_.push_back(builder_.constant(values[pick(std::size(values))]));
    add(op::add(builder_, {any(), numbers_.back()}));
  }

  void add_gradient() {
    Value* loss = op::sum(builder_, {any()});
    std::vector<Value*> operands = {loss, builder_.none()};
    operands.insert(operands.end(), states_.begin(), states_.end());
    const auto* node = builder_.append(
        op::gradient, operands,
        {{"outputs", int64_t{1}}, {"targets", static_cast<int64_t>(states_.size())}});
    gradients_ = node->outputs;
  }

  void add_writes() {
    for (size_t i = 0; i < states_.size(); ++i) {
      Value* step = op::mul(builder_, {gradients_[i], numbers_.front()});
      Value* updated = op::sub(builder_, {states_[i], step});
      builder_.append(op::commit, {updated}, {{"cell", cat("cell", i)}});
      builder_.append(op::rebind, {gradients_[i]}, {{"cell", cat("gradient", i)}});
    }
  }

  std::mt19937 random_;
  Graph graph_;
  Builder builder_;
  std::vector<Value*> pool_, numbers_, states_, gradients_;
};

Graph random_graph(unsigned seed, size_t size) { return RandomGraph(seed).build(size); }

void expect_same(const graph::Outcome& a, const graph::Outcome& b) {
  ASSERT_EQ(a.ok(), b.ok());
  ASSERT_EQ(a.results.size(), b.results.size());
  for (size_t i = 0; i < a.results.size(); ++i)
    EXPECT_TRUE(graph::identical(a.results[i], b.results[i]))
        << "result " << i << ": " << a.results[i] << " and " << b.results[i];
  ASSERT_EQ(a.committed.size(), b.committed.size());
  for (const auto& [cell, value] : a.committed)
    EXPECT_TRUE(graph::identical(value, b.committed.at(cell))) << cell;
  ASSERT_EQ(a.rebound.size(), b.rebound.size());
  for (const auto& [cell, value] : a.rebound)
    EXPECT_TRUE(graph::identical(value, b.rebound.at(cell))) << cell;
}

TEST(Passes, ChangeNothingThatCanBeSeen) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Graph original = random_graph(seed, 4 + seed % 24);
    const Graph differentiated = differentiate(decompose(original));
    const Data data(differentiated, seed);
    const graph::Outcome expected = data.run(differentiated);
    for (const NamedPass& pass : all_passes()) {
      const Graph result = pass.run(copied(differentiated));
      ASSERT_NO_THROW(graph::verify(result)) << pass.name << " on\n"
                                             << graph::print(differentiated);
      expect_same(data.run(result), expected);
      if (HasFailure()) {
        FAIL() << pass.name << ", seed " << seed << ", on\n"
               << graph::print(differentiated) << "\ngave\n"
               << graph::print(result);
      }
    }
  }
}

/// A structured program with its gradients, some of them unused.
Graph random_program(unsigned seed) {
  Graph graph = RandomProgram(seed, seed % 2 == 1).build();
  Builder builder(graph);
  std::vector<Value*> operands = {graph.results().front(), builder.none()};
  operands.insert(operands.end(), graph.inputs().begin(), graph.inputs().begin() + 3);
  const std::vector<Value*> gradients =
      builder.append(op::gradient, operands, {{"outputs", int64_t{1}}, {"targets", int64_t{3}}})
          ->outputs;
  for (size_t i = 0; i < 3; ++i)
    if ((seed >> i) % 2 == 0) graph.body().results.push_back(gradients[i]);
  return graph;
}

TEST(Passes, ChangeNothingInBlocks) {
  for (unsigned seed = 0; seed < 16; ++seed) {
    const Graph differentiated = differentiate(decompose(random_program(seed)));
    Data data(differentiated, seed);
    for (graph::Datum& datum : data.inputs)
      if (std::holds_alternative<int64_t>(datum)) datum = static_cast<int64_t>(seed % 4);
    data.inputs[3] = seed % 3 == 0;
    const graph::Outcome expected = data.run(differentiated);
    for (const NamedPass& first : all_passes()) {
      const Graph once = first.run(copied(differentiated));
      for (const NamedPass& second : all_passes()) {
        if (first.name == "fuse" || first.name == "wrap" || first.name == "optimise") continue;
        const Graph result = second.run(copied(once));
        ASSERT_NO_THROW(graph::verify(result)) << first.name << ", " << second.name;
        expect_same(data.run(result), expected);
        if (HasFailure())
          FAIL() << first.name << ", then " << second.name << ", seed " << seed << ", on\n"
                 << graph::print(differentiated) << "\ngave\n"
                 << graph::print(result);
      }
    }
  }
}

TEST(Passes, AreDoneWithTenThousandNodesInSeconds) {
  Graph graph("large");
  Builder builder(graph);
  Value* x = builder.input(Type::tensor(DType::f32, {64, 64}), "x");
  std::vector<Value*> weights;
  for (int layer = 0; layer < 700; ++layer) {
    weights.push_back(builder
                          .append_unchecked(op::state, std::span<Value* const>(),
                                            {{"cell", cat("w", layer)}},
                                            {Type::tensor(DType::f32, {64, 64})})
                          ->output());
    x = op::mm(builder, {x, weights.back()});
    x = op::relu(builder, {op::add(builder, {x, weights.back()})});
  }
  std::vector<Value*> operands = {op::sum(builder, {x}), builder.none()};
  operands.insert(operands.end(), weights.begin(), weights.end());
  const auto* gradients =
      builder.append(op::gradient, operands,
                     {{"outputs", int64_t{1}}, {"targets", static_cast<int64_t>(weights.size())}});
  Value* rate = builder.constant(0.1);
  for (size_t i = 0; i < weights.size(); ++i) {
    Value* step = op::mul(builder, {gradients->outputs[i], rate});
    builder.append(op::commit, {op::sub(builder, {weights[i], step})}, {{"cell", cat("w", i)}});
  }
  // Time of this process alone: the machine may be busy with other things.
  const std::clock_t start = std::clock();
  std::vector<PassTime> times;
  optimise(std::move(graph), &times);
  // 0.5 to 1 on our machines, and more with a sanitizer's checks. A pass that looks at all nodes
  // for each of them takes tens of seconds.
  const double limit = 5.0;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  for (const PassTime& pass : times) RecordProperty(pass.name, cat(pass.milliseconds));
  EXPECT_LT(seconds, limit);
}

}  // namespace
}  // namespace janus::passes
