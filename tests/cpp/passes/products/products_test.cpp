// Random programs that use the same weights again and again compute the same with fewer products.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "../support.h"
#include "graph/builder.h"
#include "ops/expression.h"
#include "passes/cleanup/common_subexpressions.h"
#include "passes/cleanup/dead_code.h"
#include "passes/cleanup/simplify.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/products/stack_products.h"
#include "passes/products/sum_products.h"
#include "passes/products/widen_products.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Type;
using graph::Value;

/// Products, in any order, of rows that depend on earlier products, and the gradients of all.
class RandomProducts {
 public:
  explicit RandomProducts(unsigned seed) : random_(seed), graph_("products"), builder_(graph_) {}

  Graph build() {
    Value* sequence = input({9, 2, 5});
    bias_ = input({5});
    for (size_t i = 0; i < 2; ++i) weights_.push_back(input({5, 5}));
    for (int64_t i = 0; i < 9; ++i)
      matrices_.push_back(op::select(builder_, {sequence}, {{"dim", int64_t{0}}, {"index", i}}));
    vectors_.push_back(bias_);
    for (size_t i = 0; i < 40; ++i) step();
    Value* total = nullptr;
    for (const std::vector<Value*>& pool : {matrices_, vectors_})
      for (Value* value : pool) {
        Value* part = op::sum(builder_, {op::sin(builder_, {value})});
        total = total == nullptr ? part : op::add(builder_, {total, part});
      }
    std::vector<Value*> operands = {total, builder_.none()};
    operands.insert(operands.end(), graph_.inputs().begin(), graph_.inputs().end());
    graph_.body().results = builder_
                                .append(op::gradient, operands,
                                        {{"outputs", int64_t{1}},
                                         {"targets", static_cast<int64_t>(graph_.inputs().size())}})
                                ->outputs;
    graph_.body().results.push_back(total);
    graph_.body().results.push_back(matrices_[pick(matrices_.size())]);
    return std::move(graph_);
  }

 private:
  Value* input(graph::Shape shape) {
    return builder_.input(Type::tensor(DType::f64, std::move(shape)), "x");
  }
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  Value* any(const std::vector<Value*>& pool) { return pool[pick(pool.size())]; }

  void step() {
    Value* weight = any(weights_);
    switch (pick(6)) {
      case 0:
        return vectors_.push_back(op::tanh(builder_, {op::mv(builder_, {weight, any(vectors_)})}));
      case 1:
        return vectors_.push_back(
            op::select(builder_, {any(matrices_)}, {{"dim", int64_t{0}}, {"index", int64_t{1}}}));
      case 2:
        return matrices_.push_back(op::stack(builder_, {any(vectors_), any(vectors_)}));
      case 3:
        return matrices_.push_back(op::mm(builder_, {any(matrices_), weight}));
      default:
        return matrices_.push_back(
            op::tanh(builder_, {op::linear(builder_, {any(matrices_), weight,
                                                      pick(2) == 0 ? bias_ : builder_.none()})}));
    }
  }

  std::mt19937 random_;
  Graph graph_;
  Builder builder_;
  Value* bias_ = nullptr;
  std::vector<Value*> weights_, matrices_, vectors_;
};

size_t products(const Graph& graph) {
  size_t count = 0;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    count += node.op == &op::mm || node.op == &op::linear || node.op == &op::mv ? 1 : 0;
  });
  return count;
}

void expect_near(const graph::Outcome& a, const graph::Outcome& b) {
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a.results.size(), b.results.size());
  for (size_t i = 0; i < a.results.size(); ++i) {
    const auto& x = std::get<graph::DenseTensor>(a.results[i]);
    const auto& y = std::get<graph::DenseTensor>(b.results[i]);
    ASSERT_EQ(x.sizes, y.sizes) << "result " << i;
    for (size_t j = 0; j < x.elements.size(); ++j)
      EXPECT_NEAR(x.elements[j].real, y.elements[j].real,
                  1e-12 * (1 + std::abs(x.elements[j].real)))
          << "result " << i << ", element " << j;
  }
}

TEST(Products, AreFewerAndGiveTheSame) {
  size_t before = 0, after = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Graph original = remove_dead_code(merge_common_subexpressions(
        simplify(differentiate(decompose(RandomProducts(seed).build())))));
    const Data data(original, seed);
    const graph::Outcome expected = data.run(original);
    const Graph summed = sum_products(original);
    for (const Graph& result : {stack_products(copied(summed)), widen_products(copied(original)),
                                widen_products(stack_products(copied(summed))),
                                stack_products(widen_products(stack_products(copied(summed))))}) {
      ASSERT_NO_THROW(graph::verify(result));
      expect_near(data.run(result), expected);
      EXPECT_LE(products(remove_dead_code(copied(result))), products(original));
      if (HasFailure())
        FAIL() << "seed " << seed << ", on\n"
               << graph::print(original) << "\ngave\n"
               << graph::print(result);
    }
    before += products(original);
    after += products(remove_dead_code(stack_products(copied(summed))));
  }
  EXPECT_LT(10 * after, 9 * before);
}

}  // namespace
}  // namespace janus::passes
