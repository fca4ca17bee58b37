// Gradients through `if` and `while`, of the first and of higher orders, against finite
// differences.
#include <gtest/gtest.h>

#include "../random_program.h"
#include "../support.h"
#include "graph/builder.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/pipeline/pipeline.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Node;
using graph::Type;
using graph::Value;

std::vector<Value*> tensor_inputs(const Graph& graph) {
  std::vector<Value*> inputs;
  for (Value* input : graph.inputs())
    if (carries_gradient(input->type)) inputs.push_back(input);
  return inputs;
}

/// Appends the gradient of `output` with respect to all tensor inputs.
std::vector<Value*> append_gradient(Builder& builder, Value* output, bool create_graph) {
  const std::vector<Value*> targets = tensor_inputs(builder.graph());
  std::vector<Value*> operands = {output, builder.none()};
  operands.insert(operands.end(), targets.begin(), targets.end());
  return builder
      .append(op::gradient, operands,
              {{"outputs", int64_t{1}},
               {"targets", static_cast<int64_t>(targets.size())},
               {"create_graph", create_graph}})
      ->outputs;
}

/// A function whose only result is a number made of the gradients of `graph`'s only result.
Graph derived(const Graph& original) {
  Graph graph = copied(original);
  Builder builder(graph);
  Value* total = nullptr;
  for (Value* gradient : append_gradient(builder, graph.results().front(), true)) {
    Value* part = op::sum(builder, {op::sin(builder, {gradient})});
    total = total == nullptr ? part : op::add(builder, {total, part});
  }
  graph.body().results = {total};
  return graph;
}

double value_after_step(const Graph& graph, Data data, size_t input, size_t element, double step) {
  if (step != 0) std::get<graph::DenseTensor>(data.inputs[input]).elements[element].real += step;
  const graph::Outcome outcome = data.run(graph);
  EXPECT_TRUE(outcome.ok()) << outcome.failure.value_or("a guard failed");
  return std::get<graph::DenseTensor>(outcome.results.at(0)).at(0);
}

/// Compares the gradient of the graph's only result with differences.
void expect_gradient_matches(const Graph& function, const Data& data) {
  Graph with_gradient = copied(function);
  Builder builder(with_gradient);
  with_gradient.body().results = append_gradient(builder, with_gradient.results().front(), false);
  const Graph graph = decompose(differentiate(decompose(with_gradient)));
  graph::verify(graph);
  const Graph optimised = optimise(copied(with_gradient));
  graph::verify(optimised);
  const graph::Outcome outcome = data.run(graph), again = data.run(optimised);
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(again.ok());
  for (size_t i = 0; i < outcome.results.size(); ++i)
    EXPECT_TRUE(close(outcome.results[i], again.results[i], 1e-12))
        << graph::print(graph) << graph::print(optimised);
  const Graph plain = decompose(differentiate(decompose(function)));
  constexpr double step = 1e-5;
  size_t result = 0;
  for (size_t input = 0; input < data.inputs.size(); ++input) {
    const auto* tensor = std::get_if<graph::DenseTensor>(&data.inputs[input]);
    if (tensor == nullptr) continue;
    const auto& gradient = std::get<graph::DenseTensor>(outcome.results.at(result++));
    for (size_t element = 0; element < gradient.elements.size(); ++element) {
      const auto difference = [&](double size) {
        return value_after_step(plain, data, input, element, size) -
               value_after_step(plain, data, input, element, -size);
      };
      const double expected = (8 * difference(step) - difference(2 * step)) / (12 * step);
      EXPECT_NEAR(gradient.at(element), expected, 1e-5 * std::max(1.0, std::abs(expected)))
          << "input " << input << ", element " << element << " of\n"
          << graph::print(with_gradient) << graph::print(graph);
    }
  }
}

void expect_gradients_match(const Graph& function, const Data& data, int orders) {
  Graph graph = copied(function);
  for (int order = 1; order <= orders; ++order) {
    SCOPED_TRACE(cat("order ", order));
    expect_gradient_matches(graph, data);
    if (testing::Test::HasFailure()) return;
    graph = derived(graph);
  }
}

void expect_gradients_match(std::string_view text, int orders, int64_t number) {
  const Graph function = parsed(text);
  for (const bool flag : {true, false}) {
    SCOPED_TRACE(flag);
    Data data(function);
    for (graph::Datum& datum : data.inputs) {
      if (std::holds_alternative<bool>(datum)) datum = flag;
      if (std::holds_alternative<int64_t>(datum)) datum = number;
    }
    expect_gradients_match(function, data, orders);
  }
}

TEST(ControlGradient, SidesThatKeepDifferentThings) {
  expect_gradients_match(R"(
graph @f(%x: f64[3], %w: f64[3], %c: bool) {
  %y = if %c : f64[3] {
    %e = exp %x : f64[3]
    %a = mul %e, %w : f64[3]
    yield %a
  } else {
    %t = tanh %w : f64[3]
    yield %t
  }
  %z = mul %y, %x : f64[3]
  %l = sum %z : f64[]
  return %l
})",
                         3, 2);
}

TEST(ControlGradient, ASideThatGivesWhatItIsGiven) {
  expect_gradients_match(R"(
graph @f(%x: f64[3], %w: f64[3], %c: bool) {
  %y, %z = if %c : f64[3], f64[3] {
    %e = mul %x, %w : f64[3]
    yield %e, %x
  } else {
    yield %w, %w
  }
  %p = mul %y, %z : f64[3]
  %l = sum %p : f64[]
  return %l
})",
                         3, 2);
}

TEST(ControlGradient, BranchInABranch) {
  expect_gradients_match(R"(
graph @f(%x: f64[3], %w: f64[3], %c: bool, %d: bool) {
  %s = sin %x : f64[3]
  %y = if %c : f64[3] {
    %e = mul %s, %w : f64[3]
    %f = exp %e : f64[3]
    %i = if %d : f64[3] {
      %j = mul %f, %e : f64[3]
      yield %j
    } else {
      %k = mul %f, %f : f64[3]
      yield %k
    }
    %o = mul %i, %s : f64[3]
    yield %o
  } else {
    yield %w
  }
  %p = mul %y, %x : f64[3]
  %l = sum %p : f64[]
  return %l
})",
                         3, 2);
}

constexpr std::string_view recurrence = R"(
graph @f(%x: f64[2,3], %w: f64[3,3], %n: i64) {
  %zero = constant {value=0} : i64
  %y, %i = while %x, %zero : f64[2,3], i64 { (%y0: f64[2,3], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[2,3], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %m = mm %y1, %w : f64[2,3]
    %s = tanh %m : f64[2,3]
    %t = add %s, %x, %one : f64[2,3]
    yield %t, %i2
  }
  %p = mul %y, %x : f64[2,3]
  %l = sum %p : f64[]
  return %l
})";

TEST(ControlGradient, RecurrenceOfSeveralIterations) { expect_gradients_match(recurrence, 2, 3); }
TEST(ControlGradient, RecurrenceOfOneIteration) { expect_gradients_match(recurrence, 2, 1); }
TEST(ControlGradient, RecurrenceOfNoIteration) { expect_gradients_match(recurrence, 2, 0); }
TEST(ControlGradient, RecurrenceOfHighOrder) { expect_gradients_match(recurrence, 3, 2); }

/// What an iteration has kept is used by several gradients, which are added up.
TEST(ControlGradient, SumsOfFrames) {
  expect_gradients_match(R"(
graph @f(%x: f64[3], %w: f64[3], %n: i64) {
  %zero = constant {value=0} : i64
  %y, %i = while %x, %zero : f64[3], i64 { (%y0: f64[3], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[3], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %s = mul %w, %w : f64[3]
    %m = mul %y1, %s : f64[3]
    yield %m, %i2
  }
  %p = mul %y, %w : f64[3]
  %q = mul %p, %p : f64[3]
  %l = sum %q : f64[]
  return %l
})",
                         3, 2);
}

TEST(ControlGradient, ALoopThatKeepsNothingCounts) {
  const Graph function = parsed(R"(
graph @f(%x: f64[3], %w: f64[3], %n: i64) {
  %zero = constant {value=0} : i64
  %y, %i = while %x, %zero : f64[3], i64 { (%y0: f64[3], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[3], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %m = mul %y1, %w : f64[3]
    %d = sub %m, %m, %one : f64[3]
    %c = detach %d : f64[3]
    %s = add %y1, %c, %one : f64[3]
    %h = neg %s : f64[3]
    yield %h, %i2
  }
  %l = sum %y : f64[]
  return %l
})");
  Data data(function);
  data.inputs[2] = int64_t{3};
  expect_gradient_matches(function, data);
  Graph graph = copied(function);
  Builder builder(graph);
  graph.body().results = append_gradient(builder, graph.results().front(), false);
  EXPECT_EQ(graph::print(differentiate(decompose(graph))).find("list<"), std::string::npos);
}

TEST(ControlGradient, CarriedValuesThatChangePlaces) {
  expect_gradients_match(R"(
graph @f(%x: f64[3], %w: f64[3], %n: i64) {
  %zero = constant {value=0} : i64
  %a, %b, %u, %i = while %x, %w, %x, %zero : f64[3], f64[3], f64[3], i64 { (%a0: f64[3], %b0: f64[3], %u0: f64[3], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%a1: f64[3], %b1: f64[3], %u1: f64[3], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %m = mul %a1, %b1 : f64[3]
    %s = sin %m : f64[3]
    yield %b1, %s, %w, %i2
  }
  %l = sum %b : f64[]
  return %l
})",
                         2, 4);
}

TEST(ControlGradient, BranchesInLoopsInLoops) {
  expect_gradients_match(R"(
graph @f(%x: f64[3], %w: f64[3], %n: i64, %c: bool) {
  %zero = constant {value=0} : i64
  %y, %i = while %x, %zero : f64[3], i64 { (%y0: f64[3], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[3], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %q = sin %y1 : f64[3]
    %z, %j = while %q, %zero : f64[3], i64 { (%z0: f64[3], %j0: i64)
      %more = scalar_lt %j0, %i2 : bool
      yield %more
    } do { (%z1: f64[3], %j1: i64)
      %two = constant {value=2} : i64
      %j2 = scalar_add %j1, %one : i64
      %odd = scalar_mod %j1, %two : i64
      %is = scalar_eq %odd, %zero : bool
      %r = if %is : f64[3] {
        %m = mul %z1, %w : f64[3]
        %v = if %c : f64[3] {
          %e = tanh %m : f64[3]
          yield %e
        } else {
          yield %y1
        }
        %o = mul %v, %q : f64[3]
        yield %o
      } else {
        %p = add %z1, %w, %one : f64[3]
        yield %p
      }
      yield %r, %j2
    }
    %s = add %z, %y1, %one : f64[3]
    yield %s, %i2
  }
  %l = sum %y : f64[]
  return %l
})",
                         2, 3);
}

TEST(ControlGradient, GradientInALoop) {
  // Gradient descent: the backward run stands in the loop's body, also that of what is in front.
  const Graph graph = parsed(R"(
graph @f(%x: f64[3], %w: f64[3], %n: i64, %c: bool) {
  %none = constant {value=none} : none
  %zero = constant {value=0} : i64
  %s = if %c : f64[3] {
    %e = exp %x : f64[3]
    yield %e
  } else {
    yield %x
  }
  %y, %i = while %w, %zero : f64[3], i64 { (%y0: f64[3], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[3], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %m = mul %y1, %s : f64[3]
    %t = if %c : f64[3] {
      %q = mul %m, %m : f64[3]
      yield %q
    } else {
      yield %m
    }
    %l = sum %t : f64[]
    %dy, %dx = gradient %l, %none, %y1, %x {outputs=1, targets=2} : f64[3], f64[3]
    %rate = constant {value=0.125} : f64
    %d = add %dy, %dx, %one : f64[3]
    %u = mul %d, %rate : f64[3]
    %v = sub %y1, %u, %one : f64[3]
    yield %v, %i2
  }
  return %y
})");
  const Graph expanded = decompose(differentiate(decompose(graph)));
  graph::verify(expanded);
  const Graph optimised = optimise(copied(graph));
  graph::verify(optimised);
  const double x = 0.5;
  Data data(graph);
  const auto run = [&](bool flag) {
    const auto vector = [](double a) { return graph::DenseTensor::of(DType::f64, {3}, {a, a, a}); };
    data.inputs = {vector(x), vector(2.0), int64_t{3}, flag};
    const graph::Outcome outcome = data.run(expanded), again = data.run(optimised);
    EXPECT_TRUE(close(outcome.results.at(0), again.results.at(0), 1e-13));
    return std::get<graph::DenseTensor>(outcome.results.at(0)).at(0);
  };
  double taken = 2, other = 2;
  for (int round = 0; round < 3; ++round) {
    const double e = std::exp(x);
    taken -= 0.125 * (2 * taken * e * e + 2 * taken * taken * e * e);
    other -= 0.125 * (x + other);
  }
  EXPECT_NEAR(run(true), taken, 1e-9 * std::abs(taken));
  EXPECT_NEAR(run(false), other, 1e-12);
}

// ---- Random structured programs -----------------------------------------------------------------

void expect_gradients_of_random_programs(unsigned count, bool with_functions) {
  for (unsigned seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    const Graph function = RandomProgram(seed, with_functions).build();
    graph::verify(function);
    Data data(function, seed);
    std::mt19937 random(seed);
    for (graph::Datum& datum : data.inputs) {
      if (std::holds_alternative<bool>(datum)) datum = random() % 2 == 0;
      if (std::holds_alternative<int64_t>(datum)) datum = static_cast<int64_t>(random() % 4);
    }
    expect_gradients_match(function, data, seed % 5 == 0 ? 2 : 1);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ControlGradient, RandomPrograms) { expect_gradients_of_random_programs(150, false); }

TEST(FunctionGradient, RandomPrograms) { expect_gradients_of_random_programs(60, true); }

// ---- Functions ----------------------------------------------------------------------------------

TEST(FunctionGradient, RecursionThatKeepsSomethingOfEachCall) {
  for (const int64_t depth : {0, 1, 4}) {
    expect_gradients_match(R"(
graph @f(%x: f64[2], %w: f64[2], %n: i64) {
  %zero = constant {value=0} : i64
  %one = constant {value=1} : i64
  function {name="down"} { (%y: f64[2], %k: i64)
    %go = scalar_gt %k, %zero : bool
    %r = if %go : f64[2] {
      %rest = scalar_sub %k, %one : i64
      %z = mul %y, %w : f64[2]
      %t = sin %z : f64[2]
      %a = call %t, %rest {callee="down"} : f64[2]
      %b = mul %a, %y : f64[2]
      yield %b
    } else {
      %e = exp %y : f64[2]
      yield %e
    }
    yield %r
  }
  %y = call %x, %n {callee="down"} : f64[2]
  %s = sum %y : f64[]
  return %s
})",
                           2, depth);
  }
}

TEST(FunctionGradient, FunctionsThatCallEachOtherAndThemselvesTwice) {
  expect_gradients_match(R"(
graph @f(%x: f64[2], %w: f64[2], %n: i64) {
  %zero = constant {value=0} : i64
  %one = constant {value=1} : i64
  function {name="tree"} { (%y: f64[2], %k: i64)
    %go = scalar_gt %k, %zero : bool
    %r, %c = if %go : f64[2], i64 {
      %rest = scalar_sub %k, %one : i64
      %a, %n.1 = call %y, %rest {callee="scaled"} : f64[2], i64
      %b, %n.2 = call %w, %rest {callee="scaled"} : f64[2], i64
      %d = mul %a, %b : f64[2]
      %n.3 = scalar_add %n.1, %n.2 : i64
      yield %d, %n.3
    } else {
      %t = tanh %y : f64[2]
      yield %t, %one
    }
    yield %r, %c
  }
  function {name="scaled"} { (%y: f64[2], %k: i64)
    %z = mul %y, %w : f64[2]
    %r, %c = call %z, %k {callee="tree"} : f64[2], i64
    %s = sin %r : f64[2]
    yield %s, %c
  }
  %y, %count = call %x, %n {callee="tree"} : f64[2], i64
  %z, %again = call %y, %one {callee="scaled"} : f64[2], i64
  %s = sum %z : f64[]
  return %s
})",
                         2, 2);
}

TEST(FunctionGradient, CallsInLoopsAndSides) {
  expect_gradients_match(R"(
graph @f(%x: f64[2], %w: f64[2], %c: bool, %n: i64) {
  %zero = constant {value=0} : i64
  %one = constant {value=1} : i64
  function {name="step"} { (%y: f64[2])
    %z = mul %y, %w : f64[2]
    %t = tanh %z : f64[2]
    yield %t
  }
  %y, %i = while %x, %zero : f64[2], i64 { (%y0: f64[2], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[2], %i1: i64)
    %i2 = scalar_add %i1, %one : i64
    %y2 = if %c : f64[2] {
      %a = call %y1 {callee="step"} : f64[2]
      yield %a
    } else {
      %b = call %w {callee="step"} : f64[2]
      %d = mul %b, %y1 : f64[2]
      yield %d
    }
    yield %y2, %i2
  }
  %s = sum %y : f64[]
  return %s
})",
                         2, 3);
}

TEST(FunctionGradient, ListsThatGrowInCalls) {
  expect_gradients_match(R"(
graph @f(%x: f64[2], %w: f64[2], %n: i64) {
  %zero = constant {value=0} : i64
  %one = constant {value=1} : i64
  function {name="walk"} { (%y: f64[2], %k: i64, %losses: list<f64[2]>)
    %z = mul %y, %w : f64[2]
    %t = sin %z : f64[2]
    %go = scalar_gt %k, %zero : bool
    %r, %l = if %go : f64[2], list<f64[2]> {
      %rest = scalar_sub %k, %one : i64
      %a, %l.1 = call %t, %rest, %losses {callee="walk"} : f64[2], list<f64[2]>
      %b, %l.2 = call %w, %rest, %l.1 {callee="walk"} : f64[2], list<f64[2]>
      %c = mul %a, %b : f64[2]
      %l.3 = list_push %l.2, %c : list<f64[2]>
      yield %c, %l.3
    } else {
      %l.4 = list_push %losses, %t : list<f64[2]>
      yield %t, %l.4
    }
    yield %r, %l
  }
  %none = list_new : list<f64[2]>
  %state, %all = call %x, %n, %none {callee="walk"} : f64[2], list<f64[2]>
  %sum, %left = while %x, %all : f64[2], list<f64[2]> { (%s: f64[2], %l: list<f64[2]>)
    %count = list_size %l : i64
    %more = scalar_gt %count, %zero : bool
    yield %more
  } do { (%s: f64[2], %l: list<f64[2]>)
    %l.1, %loss = list_pop %l : list<f64[2]>, f64[2]
    %d = mul %loss, %s : f64[2]
    %e = tanh %d : f64[2]
    yield %e, %l.1
  }
  %whole = add %sum, %state, %one : f64[2]
  %total = sum %whole : f64[]
  return %total
})",
                         2, 2);
}

}  // namespace
}  // namespace janus::passes
