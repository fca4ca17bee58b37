// Programs with control flow, executed several times (ordinarily, then planned) and compared with
// the reference interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "../../passes/random_program.h"
#include "../random_runs.h"
#include "passes/gradient/split_gradient.h"
#include "passes/pipeline/pipeline.h"

namespace janus::execute {
namespace {

using graph::Builder;
using graph::Datum;
using graph::Graph;
using graph::Value;

TEST(Control, RandomProgramsWithGradients) {
  for (unsigned seed = 0; seed < 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = passes::optimise(with_gradients(passes::RandomProgram(seed).build()));
    expect_same_in_each_run(graph, graph, seed);
  }
}

TEST(Control, FramesThatLeaveAProgramStayAsTheyAre) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    fake::ReferenceLibrary library;
    const Graph function = passes::RandomProgram(seed).build();
    passes::SplitGradient split = passes::split_gradient(function, {0}, {0, 1, 2}, {});
    const size_t saved = split.saved_count;
    const auto forward = Program::compile(passes::optimise(std::move(split.forward)), library);
    const auto backward = Program::compile(passes::optimise(std::move(split.backward)), library);
    const Graph joint = passes::optimise(with_gradients(function));

    // All forward runs first, then all backward runs.
    std::vector<std::vector<Slot>> kept;
    std::vector<passes::Data> given;
    for (unsigned run = 0; run < 4; ++run) {
      given.emplace_back(function, seed + run);
      given.back().inputs.back() = static_cast<int64_t>(run);
      std::vector<Slot> results(1 + saved);
      ASSERT_FALSE(forward->run(slots_of(library, given.back().inputs), {}, results, {}));
      kept.push_back(std::move(results));
    }
    for (unsigned run = 0; run < 4; ++run) {
      std::vector<Slot> inputs(kept[run].begin() + 1, kept[run].end());
      inputs.push_back(fake::slot_of(library, graph::DenseTensor::of(graph::DType::f64, {}, {1})));
      std::vector<Slot> gradients(3);
      ASSERT_FALSE(backward->run(inputs, {}, gradients, {}));
      std::vector<Datum> expected = given[run].run(joint).results;
      expected.erase(expected.begin());
      expect_results(gradients, expected);
    }
  }
}

TEST(Control, SizesMayChangeBetweenCalls) {
  fake::ReferenceLibrary library;
  const Graph graph = passes::optimise(passes::parsed(R"(
graph @f(%x: f64[B,2], %w: f64[2,2], %n: i64) {
  %none = constant {value=none} : none
  %zero = constant {value=0} : i64
  %y, %i = while %x, %zero : f64[B,2], i64 { (%y0: f64[B,2], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[B,2], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %m = mm %y1, %w : f64[B,2]
    %t = tanh %m : f64[B,2]
    yield %t, %i2
  }
  %s = sum %y : f64[]
  %dx, %dw = gradient %s, %none, %x, %w {outputs=1, targets=2} : f64[B,2], f64[2,2]
  return %s, %dx, %dw
})"));
  const auto program = Program::compile(passes::copied(graph), library);
  for (int run = 0; run < 12; ++run) {
    passes::Data data(graph, static_cast<unsigned>(run), 2 + run % 3);
    data.inputs.back() = static_cast<int64_t>(run % 5);
    std::vector<Slot> results(3);
    ASSERT_FALSE(program->run(slots_of(library, data.inputs), {}, results, {}));
    expect_results(results, data.run(graph).results);
  }
}

TEST(Control, AGuardInASideThatIsNotTakenIsNotAsked) {
  fake::ReferenceLibrary library;
  const Graph graph = passes::parsed(R"(
graph @f(%x: f64[2], %c: bool, %ok: bool) {
  %y = if %c : f64[2] {
    guard %ok {id=7}
    %a = exp %x : f64[2]
    yield %a
  } else {
    yield %x
  }
  return %y
})");
  const auto program = Program::compile(passes::optimise(passes::copied(graph)), library);
  const Slot x = fake::slot_of(library, graph::DenseTensor::of(graph::DType::f64, {2}, {0, 1}));
  for (int run = 0; run < 4; ++run) {
    std::vector<Slot> results(1);
    EXPECT_FALSE(program->run(std::vector{x, Slot::of(false), Slot::of(false)}, {}, results, {}));
    EXPECT_FALSE(program->run(std::vector{x, Slot::of(true), Slot::of(true)}, {}, results, {}));
    const auto failure =
        program->run(std::vector{x, Slot::of(true), Slot::of(false)}, {}, results, {});
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->guard, 7);
  }
}

TEST(Control, LongLoopsDoNotFillTheStack) {
  fake::ReferenceLibrary library;
  const Graph graph = passes::optimise(passes::parsed(R"(
graph @f(%x: f64[], %w: f64[], %n: i64) {
  %none = constant {value=none} : none
  %zero = constant {value=0} : i64
  %y, %i = while %x, %zero : f64[], i64 { (%y0: f64[], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f64[], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %m = mul %y1, %w : f64[]
    yield %m, %i2
  }
  %dw = gradient %y, %none, %w {outputs=1, targets=1} : f64[]
  return %y, %dw
})"));
  const auto program = Program::compile(passes::copied(graph), library);
  const auto number = [&](double value) {
    return fake::slot_of(library, graph::DenseTensor::of(graph::DType::f64, {}, {value}));
  };
  std::vector<Slot> results(2);
  for (int run = 0; run < 3; ++run)
    ASSERT_FALSE(program->run(std::vector{number(2), number(1), Slot::of(int64_t{60'000})}, {},
                              results, {}));
  EXPECT_EQ(std::get<graph::DenseTensor>(fake::datum_of(results[1])).at(0), 120'000);
}

TEST(Control, ResultsShareNoMemoryWithWhatFramesKeep) {
  fake::ReferenceLibrary library;
  passes::SplitGradient split = passes::split_gradient(passes::parsed(R"(
graph @f(%x: f64[2], %c: bool) {
  %y = if %c : f64[2] {
    %a = exp %x : f64[2]
    yield %a
  } else {
    yield %x
  }
  return %y
})"),
                                                       {0}, {0}, {});
  const auto forward = Program::compile(passes::optimise(std::move(split.forward)), library);
  const auto backward = Program::compile(passes::optimise(std::move(split.backward)), library);
  const auto vector = [&](double a, double b) {
    return fake::slot_of(library, graph::DenseTensor::of(graph::DType::f64, {2}, {a, b}));
  };
  for (int run = 0; run < 4; ++run) {
    std::vector<Slot> results(1 + split.saved_count), gradients(1);
    ASSERT_FALSE(forward->run(std::vector{vector(0, 1), Slot::of(true)}, {}, results, {}));
    Slot zeros = vector(0, 0);
    library.copy(results[0], zeros);  // the program writes to the result
    std::vector<Slot> inputs(results.begin() + 1, results.end());
    inputs.push_back(vector(1, 1));
    ASSERT_FALSE(backward->run(inputs, {}, gradients, {}));
    expect_results(gradients, {graph::DenseTensor::of(graph::DType::f64, {2}, {1, std::exp(1)})});
  }
}

}  // namespace
}  // namespace janus::execute
