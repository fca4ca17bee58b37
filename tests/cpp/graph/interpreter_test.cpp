#include "graph/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/element_code.h"
#include "graph/text.h"
#include "ops/list.h"
#include "ops/reference.h"

namespace janus::graph {
namespace {

DenseTensor floats(std::vector<int64_t> sizes, std::vector<double> values) {
  return DenseTensor::of(DType::f32, std::move(sizes), std::move(values));
}

Outcome run(std::string_view text, std::vector<Datum> inputs,
            const std::map<std::string, Datum>& cells = {}) {
  const Graph graph = parse(text, ops::table());
  verify(graph);
  return interpret(graph, inputs, cells, ops::reference());
}

void expect_same(const Datum& a, const Datum& b) { EXPECT_TRUE(identical(a, b)) << a << " " << b; }

TEST(Interpreter, computes_elementwise_with_named_dimensions) {
  const Outcome outcome = run(R"(graph @g(%x: f32[B,2]) {
  %one = constant {value=1} : i64
  %y = add %x, %x, %one : f32[B,2]
  %z = relu %y : f32[B,2]
  %n = size {of=dim(B*2)} : i64
  return %z, %n
})",
                              {floats({3, 2}, {1, -2, 3, -4, 5, std::nan("")})});
  ASSERT_TRUE(outcome.ok());
  const auto& z = std::get<DenseTensor>(outcome.results[0]);
  EXPECT_EQ(z.at(0), 2);
  EXPECT_EQ(z.at(1), 0);
  EXPECT_EQ(z.at(4), 10);
  expect_same(outcome.results[1], int64_t{6});
}

TEST(Interpreter, runs_matrix_products_and_sums) {
  const Outcome outcome = run(R"(graph @g(%x: f32[2,2], %y: f32[2,1]) {
  %z = mm %x, %y : f32[2,1]
  %s = sum %z : f32[]
  return %z, %s
})",
                              {floats({2, 2}, {1, 2, 3, 4}), floats({2, 1}, {10, 1})});
  expect_same(outcome.results[0], floats({2, 1}, {12, 34}));
  expect_same(outcome.results[1], floats({}, {46}));
}

constexpr const char* branch = R"(graph @g(%b: bool, %x: f32[2]) {
  %y = if %b : f32[2] {
    %r = relu %x : f32[2]
    yield %r
  } else {
    yield %x
  }
  return %y
})";

TEST(Interpreter, takes_one_side_of_a_branch) {
  const DenseTensor x = floats({2}, {-1, 2});
  expect_same(run(branch, {true, x}).results[0], floats({2}, {0, 2}));
  expect_same(run(branch, {false, x}).results[0], x);
}

TEST(Interpreter, loops_while_the_condition_holds) {
  const Outcome outcome = run(R"(graph @g(%go: bool, %stop: bool, %x: f32[1]) {
  %a, %b, %y = while %go, %go, %x : bool, bool, f32[1] { (%p: bool, %q: bool, %v: f32[1])
    yield %p
  } do { (%p: bool, %q: bool, %v: f32[1])
    %w = mul %v, %v : f32[1]
    yield %q, %stop, %w
  }
  return %y
})",
                              {true, false, floats({1}, {3})});
  // The body runs for %go, then for %go again, then %stop ends it.
  expect_same(outcome.results.at(0), floats({1}, {81}));
}

TEST(Interpreter, reads_and_writes_cells) {
  const Outcome outcome = run(R"(graph @g(%x: f32[T]) {
  %w = state {cell="w"} : f32[T]
  %y = mul %x, %w : f32[T]
  commit %y {cell="w"}
  rebind %x {cell="last"}
  return
})",
                              {floats({2}, {2, 3})}, {{"w", floats({2}, {5, 7})}});
  EXPECT_TRUE(outcome.results.empty());
  expect_same(outcome.committed.at("w"), floats({2}, {10, 21}));
  expect_same(outcome.rebound.at("last"), floats({2}, {2, 3}));
}

TEST(Interpreter, a_failed_guard_leaves_nothing) {
  const Outcome outcome = run(R"(graph @g(%b: bool, %x: f32[1]) {
  commit %x {cell="w"}
  guard %b {id=4}
  return %x
})",
                              {false, floats({1}, {1})});
  EXPECT_EQ(outcome.failed_guard, 4);
  EXPECT_TRUE(outcome.committed.empty());
  EXPECT_TRUE(outcome.results.empty());
}

TEST(Interpreter, dimensions_that_overflow_fail_the_run) {
  const Outcome outcome = run(R"(graph @g(%n: i64) {
  %s = size {of=dim($n*$n)} : i64
  return %s
})",
                              {int64_t{1} << 40});
  EXPECT_TRUE(outcome.failure.has_value());
}

constexpr const char* product_of_numbers = R"(graph @g(%a: i64, %b: i64) {
  %c = scalar_mul %a, %b : i64
  return %c
})";

TEST(Interpreter, numbers_are_pythons_and_overflow_fails_the_run) {
  expect_same(run(product_of_numbers, {int64_t{6}, int64_t{-7}}).results.at(0), int64_t{-42});
  EXPECT_TRUE(run(product_of_numbers, {int64_t{1} << 40, int64_t{1} << 40}).failure.has_value());
}

TEST(Interpreter, fused_blocks_compute_as_their_operators_alone) {
  const DenseTensor x = floats({3}, {-1, 0.1, 2});
  const Outcome outcome = run(R"(graph @g(%x: f32[3]) {
  %f = fused %x : f32[3] { (%p: f32[3])
    %m = mul %p, %p : f32[3]
    %r = relu %m : f32[3]
    yield %r
  }
  %m = mul %x, %x : f32[3]
  %r = relu %m : f32[3]
  return %f, %r
})",
                              {x});
  expect_same(outcome.results[0], outcome.results[1]);
}

TEST(Interpreter, inputs_have_to_fit) {
  EXPECT_THROW(run(branch, {true, floats({3}, {1, 2, 3})}), InternalError);
  EXPECT_THROW(run(branch, {true}), InternalError);
}

TEST(Numbers, floats_are_rounded_to_even) {
  const auto rounds = [](double value, DType dtype) {
    return rounded({.real = value}, dtype).real;
  };
  EXPECT_EQ(rounds(0.1, DType::f32), static_cast<double>(0.1f));
  EXPECT_EQ(rounds(2049, DType::f16), 2048);
  EXPECT_EQ(rounds(2051, DType::f16), 2052);
  EXPECT_EQ(rounds(65519, DType::f16), 65504);
  EXPECT_TRUE(std::isinf(rounds(65520, DType::f16)));
  EXPECT_EQ(rounds(257, DType::bf16), 256);
  EXPECT_EQ(rounds(259, DType::bf16), 260);
  EXPECT_EQ(rounds(std::ldexp(1, -24), DType::f16), std::ldexp(1, -24)) << "the least subnormal";
  EXPECT_EQ(rounds(std::ldexp(1, -26), DType::f16), 0);
  EXPECT_TRUE(std::signbit(rounds(-0.0, DType::f16)));
  EXPECT_TRUE(std::isnan(rounds(std::nan(""), DType::bf16)));
}

TEST(Numbers, integers_wrap_and_floats_truncate) {
  EXPECT_EQ(Number::of(int64_t{300}, DType::u8).integer, 44);
  EXPECT_EQ(Number::of(int64_t{200}, DType::i8).integer, -56);
  EXPECT_EQ(Number::of(-2.9, DType::i32).integer, -2);
  EXPECT_EQ(Number::of(0.5, DType::b1).integer, 1);
  EXPECT_EQ(Number::of(std::nan(""), DType::b1).integer, 1);
}

TEST(Numbers, identical_is_to_the_bit_but_for_nan) {
  EXPECT_TRUE(identical(Datum(std::nan("")), Datum(-std::nan(""))));
  EXPECT_FALSE(identical(Datum(0.0), Datum(-0.0)));
  EXPECT_FALSE(identical(Datum(floats({1}, {1})), Datum(floats({1, 1}, {1}))));
  EXPECT_FALSE(identical(Datum(int64_t{1}), Datum(1.0)));
  EXPECT_TRUE(close(1.0, 1.0 + 1e-9, 1e-6));
  EXPECT_FALSE(close(1.0, 1.1, 1e-6));
}

constexpr const char* sum_of_tree = R"(graph @g(%tree: object<Tree>) {
  %none = object_constant {object=0} : object<object>
  function {name="total"} { (%node: object<Tree>, %depth: i64)
    %left = object_attribute %node {name="left", id=1} : object<Tree>
    %leaf = object_is %left, %none : bool
    %sum = if %leaf : i64 {
      %word = object_attribute %node {name="word", id=2} : i64
      %weighted = scalar_mul %word, %depth : i64
      yield %weighted
    } else {
      %one = constant {value=1} : i64
      %deeper = scalar_add %depth, %one : i64
      %right = object_attribute %node {name="right", id=3} : object<Tree>
      %a = call %left, %deeper {callee="total"} : i64
      %b = call %right, %deeper {callee="total"} : i64
      %both = scalar_add %a, %b : i64
      %all = scalar_add %both, %depth : i64
      yield %all
    }
    yield %sum
  }
  %zero = constant {value=0} : i64
  %total = call %tree, %zero {callee="total"} : i64
  return %total
})";

ObjectReference leaf(Datum word) {
  DatumObject node;
  node.attributes = {{"left", ObjectReference()}, {"word", std::move(word)}};
  return std::make_shared<const DatumObject>(std::move(node));
}

ObjectReference inner(const ObjectReference& left, const ObjectReference& right) {
  DatumObject node;
  node.attributes = {{"left", left}, {"right", right}};
  return std::make_shared<const DatumObject>(std::move(node));
}

Outcome run_on_tree(const ObjectReference& tree) {
  const Graph graph = parse(sum_of_tree, ops::table());
  verify(graph);
  const ObjectReference none;
  return interpret(graph, std::vector<Datum>{tree}, {}, ops::reference(), {&none, 1});
}

TEST(Interpreter, invocations_of_a_function_have_values_of_their_own) {
  const Outcome outcome =
      run_on_tree(inner(inner(leaf(int64_t{1}), leaf(int64_t{10})), leaf(int64_t{100})));
  ASSERT_TRUE(outcome.ok());
  expect_same(outcome.results[0], int64_t{(1 + 10) * 2 + 100 + 1});
}

TEST(Interpreter, an_object_that_is_not_as_expected_fails_its_guard) {
  EXPECT_EQ(run_on_tree(inner(leaf(int64_t{1}), leaf(2.0))).failed_guard, 2);
  EXPECT_EQ(run_on_tree(inner(leaf(int64_t{1}), leaf(true))).failed_guard, 2);
  EXPECT_EQ(run_on_tree(std::make_shared<const DatumObject>()).failed_guard, 1);
  EXPECT_EQ(run_on_tree(ObjectReference()).failed_guard, 1);
}

}  // namespace
}  // namespace janus::graph
