// Sides of `if`s that hold operators, as parts of a plan: both are known before they are taken.
#include <gtest/gtest.h>

#include "../../passes/random_program.h"
#include "../random_runs.h"
#include "passes/pipeline/pipeline.h"

namespace janus::execute {
namespace {

using graph::Datum;
using graph::DenseTensor;
using graph::DType;
using graph::Graph;

/// Whether the graph's plan, made after a run that took one side, holds no `if` as a whole.
void expect_opened(const Graph& graph, bool first_taken) {
  SCOPED_TRACE(first_taken);
  fake::ReferenceLibrary library;
  const auto program = Program::compile(passes::copied(graph), library);
  for (const bool taken : {first_taken, !first_taken, first_taken}) {
    passes::Data data(graph, 3);
    data.inputs.back() = taken;
    std::vector<Slot> results(graph.results().size());
    ASSERT_FALSE(program->run(slots_of(library, data.inputs), {}, results, {}));
    expect_results(results, data.run(graph).results);
  }
  EXPECT_NE(program->describe().find("skip "), std::string::npos) << program->describe();
  EXPECT_EQ(program->describe().find(" = if "), std::string::npos) << program->describe();
}

void expect_planned(std::string_view text) {
  const Graph graph = passes::optimise(passes::parsed(std::string(text)));
  expect_same_in_each_run(graph, graph, 1);
  for (const bool first_taken : {true, false}) expect_opened(graph, first_taken);
}

TEST(Sides, ProductsOfOneSideAndTheirGradients) {
  expect_planned(R"(
graph @f(%x: f64[3,2], %w: f64[2,2], %go: bool) {
  %none = constant {value=none} : none
  %y = if %go : f64[3,2] {
    %m = mm %x, %w : f64[3,2]
    %t = tanh %m : f64[3,2]
    yield %t
  } else {
    yield %x
  }
  %s = sum %y : f64[]
  %dx, %dw = gradient %s, %none, %x, %w {outputs=1, targets=2} : f64[3,2], f64[2,2]
  return %y, %dx, %dw
})");
}

TEST(Sides, ViewsOfWhatASideGives) {
  expect_planned(R"(
graph @f(%x: f64[2,3], %w: f64[3,3], %go: bool) {
  %y, %z = if %go : f64[2,3], f64[3,2] {
    %m = mm %x, %w : f64[2,3]
    %t = transpose %m {dim0=0, dim1=1} : f64[3,2]
    yield %m, %t
  } else {
    %u = transpose %x {dim0=0, dim1=1} : f64[3,2]
    yield %x, %u
  }
  %p = mm %y, %z : f64[2,2]
  return %p, %y, %z
})");
}

TEST(Sides, ASideWithinASide) {
  expect_planned(R"(
graph @f(%x: f64[2,2], %w: f64[2,2], %go: bool) {
  %limit = constant {value=1.5} : f64
  %y = if %go : f64[2,2] {
    %m = mm %x, %w : f64[2,2]
    %s = sum %m : f64[]
    %v = item %s : f64
    %more = scalar_lt %v, %limit : bool
    %z = if %more : f64[2,2] {
      %again = mm %m, %w : f64[2,2]
      yield %again
    } else {
      yield %m
    }
    yield %z
  } else {
    %n = mm %w, %x : f64[2,2]
    yield %n
  }
  %p = mm %y, %w : f64[2,2]
  return %p, %y
})");
}

TEST(Sides, AGuardInASideGivesTheRunUp) {
  const Graph graph = passes::optimise(passes::parsed(R"(
graph @f(%x: f64[2,2], %holds: bool, %go: bool) {
  %y = if %go : f64[2,2] {
    guard %holds {id=7}
    %m = mm %x, %x : f64[2,2]
    yield %m
  } else {
    yield %x
  }
  %p = mm %y, %x : f64[2,2]
  return %p
})"));
  const int before = fake::alive();
  {
    fake::ReferenceLibrary library;
    const auto program = Program::compile(passes::copied(graph), library);
    passes::Data data(graph, 1);
    for (int run = 0; run < 8; ++run) {
      SCOPED_TRACE(run);
      const bool holds = run % 2 == 0, taken = run % 4 < 2;
      data.inputs[1] = holds;
      data.inputs[2] = taken;
      std::vector<Slot> results(1);
      const auto failure = program->run(slots_of(library, data.inputs), {}, results, {});
      ASSERT_EQ(failure.has_value(), taken && !holds);
      if (!failure) expect_results(results, data.run(graph).results);
    }
    EXPECT_NE(program->describe().find("skip "), std::string::npos) << program->describe();
  }
  EXPECT_EQ(fake::alive(), before);
}

TEST(Sides, SizesMayChange) {
  const Graph graph = passes::optimise(passes::parsed(R"(
graph @f(%x: f64[B,2], %w: f64[2,2], %go: bool) {
  %y = if %go : f64[B,2] {
    %m = mm %x, %w : f64[B,2]
    yield %m
  } else {
    %t = tanh %x : f64[B,2]
    yield %t
  }
  %s = sum %y : f64[]
  return %s, %y
})"));
  fake::ReferenceLibrary library;
  const auto program = Program::compile(passes::copied(graph), library);
  for (const int64_t rows : {2, 3, 2, 5, 3, 2, 5, 5}) {
    for (const bool taken : {true, false}) {
      passes::Data data(graph, 1);
      std::vector<double> elements(static_cast<size_t>(rows) * 2, 0.25 * static_cast<double>(rows));
      data.inputs[0] = DenseTensor::of(DType::f64, {rows, 2}, elements);
      data.inputs[2] = taken;
      std::vector<Slot> results(2);
      ASSERT_FALSE(program->run(slots_of(library, data.inputs), {}, results, {}));
      expect_results(results, data.run(graph).results);
    }
  }
}

TEST(Sides, AResultLiesAsItHasTo) {
  const Graph graph = passes::parsed(R"(
graph @f(%x: f64[2,3]) {
  %y = neg %x : f64[2,3]
  return %y
})");
  fake::ReferenceLibrary library;
  const std::vector<ShownResult> shown = {{.index = 0, .strides = graph::Shape{1, 2}}};
  const auto program = Program::compile(passes::copied(graph), library, nullptr, shown);
  const passes::Data data(graph, 1);
  for (int run = 0; run < 3; ++run) {
    std::vector<Slot> results(1);
    ASSERT_FALSE(program->run(slots_of(library, data.inputs), {}, results, {}));
    expect_results(results, data.run(graph).results);
    EXPECT_EQ(library.layout(results[0]).strides, (std::vector<int64_t>{1, 2}));
  }
}

}  // namespace
}  // namespace janus::execute
