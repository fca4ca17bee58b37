// Every operator that has a scalar program compiles for every dtype that it accepts, and computes
// what its program says.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "harness.h"
#include "ops/list.h"
#include "ops/promotion.h"
#include "single_operator.h"

namespace janus::kernels {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

bool is_close(const Element& expected, const Element& actual) {
  if (expected.undefined || reference::same(expected, actual)) return true;
  if (!expected.is_floating()) return false;
  const double tolerance = expected.dtype == DType::f64   ? 1e-12
                           : expected.dtype == DType::f32 ? 1e-5
                                                          : 2e-2;
  return std::fabs(expected.floating - actual.floating) <=
         tolerance * std::max(1.0, std::fabs(expected.floating));
}

void check_result(Single& single, DType dtype) {
  std::mt19937 random(3);
  Case c{.sizes = {kCount}};
  for (const Value* input : single.fused->inputs) {
    c.parameter_is_tensor.push_back(input->type.is_tensor());
    if (input->type.is_tensor()) {
      c.inputs.push_back(make_tensor(dtype, {kCount}, Layout::contiguous, random));
      fill(c.inputs.back(), [&](DType type) {
        const double value = static_cast<double>(random() % 400) / 100.0 - 2;
        return graph::is_floating(type) ? reference::floating(type, value)
                                        : reference::integral(type, static_cast<int64_t>(value));
      });
    } else {
      c.numbers.push_back(reference::floating(DType::f64, 0.75));
    }
  }
  c.outputs.push_back(
      make_tensor(single.inner->output()->type.dtype, {kCount}, Layout::contiguous, random));
  c.output_of = {-1};
  const auto expected = expected_results(*single.fused->blocks.front(), c);
  run(*compile(*single.fused), c);
  const auto actual = actual_results(c);
  for (size_t p = 0; p < expected[0].size(); ++p)
    EXPECT_TRUE(is_close(expected[0][p], actual[0][p]))
        << single.inner->op->name << " of " << graph::name(dtype) << ", point " << p
        << ": expected " << expected[0][p].number() << ", came " << actual[0][p].number();
}

TEST(OperatorKernels, ComputeWhatTheScalarProgramSays) {
  int compiled = 0;
  for (const graph::OpDef* op : ops::all()) {
    if (op->scalar == nullptr) continue;
    bool in_some_dtype = false;
    for (const DType dtype : kDTypes) {
      Single single;
      fill_block(single, *op, dtype);
      if (single.inner == nullptr || !can_compile(*single.inner)) continue;
      check_result(single, dtype);
      in_some_dtype = true;
      ++compiled;
    }
    if (!in_some_dtype) std::cout << "not in kernels: " << op->name << "\n";
  }
  EXPECT_GT(compiled, 150);
}

/// Operators with attributes and missing operands, as they stand in optimised graphs.
TEST(OperatorKernels, ComputeABlockFromText) {
  const Graph graph = graph::parse(R"(
graph @block(%x: f32[B,37], %mask: b1[37], %low: f64) {
  %y, %z = fused %x, %mask, %low : f32[B,37], i32[B,37] {
    (%a: f32[B,37], %m: b1[37], %n: f64)
    %none = constant {value=none} : none
    %two = constant {value=2} : i64
    %clamped = clamp %a, %n, %none : f32[B,37]
    %filled = masked_fill %clamped, %m, %two : f32[B,37]
    %integers = to %filled {dtype=i32} : i32[B,37]
    %sum = add %filled, %integers, %two : f32[B,37]
    yield %sum, %integers
  }
  return %y, %z
}
)",
                                   ops::table());
  const Node& fused = *graph.results()[0]->definition;
  for (const Node* node : fused.blocks.front()->nodes)
    EXPECT_TRUE(node->op->name == "constant" || can_compile(*node)) << node->op->name;
  compile_all(graph);
  std::mt19937 random(5);
  Case c{.sizes = {3, 37},
         .inputs = {make_tensor(DType::f32, {3, 37}, Layout::permuted, random),
                    make_tensor(DType::b1, {37}, Layout::contiguous, random)},
         .numbers = {reference::floating(DType::f64, -1.5)},
         .parameter_is_tensor = {true, true, false},
         .outputs = {make_tensor(DType::f32, {3, 37}, Layout::contiguous, random),
                     make_tensor(DType::i32, {3, 37}, Layout::contiguous, random)},
         .output_of = {-1, -1}};
  for (Tensor& input : c.inputs)
    fill(input, [&](DType type) {
      return type == DType::b1
                 ? reference::integral(type, static_cast<int64_t>(random() % 2))
                 : reference::floating(type, static_cast<double>(random() % 100) / 10 - 5);
    });
  const auto expected = expected_results(*fused.blocks.front(), c);
  run(*compile(fused), c);
  const auto actual = actual_results(c);
  for (size_t i = 0; i < 2; ++i)
    for (size_t p = 0; p < expected[i].size(); ++p)
      EXPECT_TRUE(reference::same(expected[i][p], actual[i][p])) << i << " at " << p;
}

}  // namespace
}  // namespace janus::kernels
