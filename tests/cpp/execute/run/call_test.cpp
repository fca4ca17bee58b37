// Programs with functions and objects, executed several times (ordinarily, then planned) and
// compared with the reference interpreter.
#include <gtest/gtest.h>

#include "../../passes/random_program.h"
#include "../random_runs.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/pipeline/pipeline.h"

namespace janus::execute {
namespace {

using graph::Datum;
using graph::DatumObject;
using graph::Graph;
using graph::ObjectReference;

TEST(Calls, RandomProgramsWithGradients) {
  for (unsigned seed = 0; seed < 25 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Graph plain = with_gradients(passes::RandomProgram(seed, true).build());
    graph::verify(plain);
    const Graph expected = passes::differentiate(passes::decompose(plain));
    graph::verify(expected);
    const Graph graph = passes::optimise(passes::copied(plain));
    graph::verify(graph);
    expect_same_in_each_run(graph, expected, seed);
  }
}

constexpr std::string_view countdown = R"(
graph @f(%n: i64, %x: f64[2]) {
  %zero = constant {value=0} : i64
  %one = constant {value=1} : i64
  %limit = constant {value=-1} : i64
  function {name="down"} { (%k: i64, %y: f64[2])
    %go = scalar_gt %k, %zero : bool
    %ok = scalar_gt %k, %limit : bool
    guard %ok {id=9}
    %r = if %go : f64[2] {
      %rest = scalar_sub %k, %one : i64
      %z = add %y, %x, %one : f64[2]
      %s = call %rest, %z {callee="down"} : f64[2]
      %t = add %s, %y, %one : f64[2]
      yield %t
    } else {
      yield %y
    }
    yield %r
  }
  %r = call %n, %x {callee="down"} : f64[2]
  return %r
})";

TEST(Calls, NestAsDeeplyAsThereIsMemory) {
  fake::ReferenceLibrary library;
  const auto program = Program::compile(passes::optimise(passes::parsed(countdown)), library);
  const Slot x = fake::slot_of(library, graph::DenseTensor::of(graph::DType::f64, {2}, {1, 2}));
  for (const int64_t depth : {3, 100'000, 2, 100'000, 0}) {
    std::vector<Slot> results(1);
    ASSERT_FALSE(program->run(std::vector<Slot>{Slot::of(depth), x}, {}, results, {}));
    const double n = static_cast<double>(depth);
    const double last = 1 + n, all = last + n * (n + 1) / 2;
    const auto result = std::get<graph::DenseTensor>(fake::datum_of(results[0]));
    EXPECT_EQ(result.at(0), all);
    EXPECT_EQ(result.at(1), 2 * all);
  }
}

TEST(Calls, NestNoMoreDeeplyThanTheCallerAllows) {
  fake::ReferenceLibrary library;
  const int before = fake::alive();
  {
    const auto program = Program::compile(passes::optimise(passes::parsed(countdown)), library);
    const Slot x = fake::slot_of(library, graph::DenseTensor::of(graph::DType::f64, {2}, {1, 2}));
    for (int run = 0; run < 3; ++run) {
      std::vector<Slot> results(1);
      const auto call = [&](int64_t depth) {
        return program->run(std::vector<Slot>{Slot::of(depth), x}, {}, results, {}, 50);
      };
      ASSERT_FALSE(call(49));
      const auto failure = call(50);
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->kind, Failure::Kind::depth);
      EXPECT_TRUE(results[0].is_empty());
    }
  }
  EXPECT_EQ(fake::alive(), before);
}

constexpr std::string_view tree = R"(
graph @tree(%tree: object<Tree>, %w: f64[2]) {
  %none = object_constant {object=0} : object<object>
  %one = constant {value=1} : i64
  function {name="total"} { (%node: object<Tree>)
    %left = object_attribute %node {name="left", id=1} : object<Tree>
    %leaf = object_is %left, %none : bool
    %sum, %count = if %leaf : f64[2], i64 {
      %value = object_attribute %node {name="value", id=2} : f64[2]
      %scaled = mul %value, %w : f64[2]
      yield %scaled, %one
    } else {
      %right = object_attribute %node {name="right", id=3} : object<Tree>
      %a, %n = call %left {callee="total"} : f64[2], i64
      %b, %m = call %right {callee="total"} : f64[2], i64
      %both = add %a, %b, %one : f64[2]
      %all = scalar_add %n, %m : i64
      yield %both, %all
    }
    yield %sum, %count
  }
  %total, %count = call %tree {callee="total"} : f64[2], i64
  return %total, %count
})";

ObjectReference leaf(Datum value) {
  DatumObject node;
  node.attributes = {{"left", ObjectReference()}, {"value", std::move(value)}};
  return std::make_shared<const DatumObject>(std::move(node));
}

ObjectReference inner(const ObjectReference& left, const ObjectReference& right) {
  DatumObject node;
  node.attributes = {{"left", left}, {"right", right}};
  return std::make_shared<const DatumObject>(std::move(node));
}

Datum vector_of(double a, double b) {
  return graph::DenseTensor::of(graph::DType::f64, {2}, {a, b});
}

TEST(Calls, ReadObjects) {
  const int before = fake::alive();
  {
    fake::ReferenceLibrary library;
    const std::vector<ObjectReference> known = {nullptr};
    const auto program = Program::compile(passes::optimise(passes::parsed(tree)), library,
                                          std::make_shared<fake::ReferenceHeap>(library, known));
    const Slot w = fake::slot_of(library, vector_of(2, 3));
    const ObjectReference small = leaf(vector_of(1, 1));
    ObjectReference large = small;
    for (int i = 1; i < 40; ++i)
      large =
          i % 2 == 0 ? inner(large, leaf(vector_of(i, 1))) : inner(leaf(vector_of(i, 1)), large);
    const ObjectReference broken = inner(large, leaf(1.5));
    const auto run = [&](const ObjectReference& object, std::vector<Slot>& results) {
      return program->run(std::vector<Slot>{fake::slot_of(library, object), w}, {}, results, {});
    };
    for (int round = 0; round < 3; ++round) {
      std::vector<Slot> results(2);
      ASSERT_FALSE(run(small, results));
      expect_results(results, {vector_of(2, 3), int64_t{1}});
      ASSERT_FALSE(run(large, results));
      expect_results(results, {vector_of(2 * (1 + 39 * 20), 3 * 40), int64_t{40}});
      const auto failure = run(broken, results);
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->guard, 2);
    }
  }
  EXPECT_EQ(fake::alive(), before);
}

/// Stops a run at the given call or operator.
class Interrupting final : public fake::ReferenceLibrary {
 public:
  void check_interrupt() override {
    if (--left == 0) throw std::runtime_error("stopped");
  }
  int left = 0;
};

TEST(Calls, LeaveNothingBehindWhenSomethingIsThrownDeepInside) {
  const int before = fake::alive();
  {
    Interrupting library;
    const auto program = Program::compile(passes::optimise(passes::parsed(countdown)), library);
    const Slot x = fake::slot_of(library, vector_of(1, 2));
    const auto run = [&](int stop_at, std::vector<Slot>& results) {
      library.left = stop_at;
      return program->run(std::vector<Slot>{Slot::of(int64_t{500}), x}, {}, results, {});
    };
    for (const int stop_at : {700, 1, 30, 499}) {
      std::vector<Slot> results(1);
      const auto failure = run(stop_at, results);
      ASSERT_EQ(failure.has_value(), stop_at != 700) << stop_at;
      if (failure) {
        EXPECT_EQ(failure->kind, Failure::Kind::operation);
      }
      ASSERT_FALSE(run(0, results));
      expect_results(results, {vector_of(501 + 125250, 2 * (501 + 125250))});
    }
  }
  EXPECT_EQ(fake::alive(), before);
}

/// A sum that is carried through all calls is changed in place: one copy is made of what the caller
/// gives, and no more.
TEST(Calls, AddToCarriedSumsInPlace) {
  fake::ReferenceLibrary library;
  const auto program = Program::compile(passes::parsed(R"(
graph @f(%sum: f64[3,2], %x: f64[2], %n: i64) {
  %zero = constant {value=0} : i64
  %one = constant {value=1} : i64
  function {name="add"} { (%s: f64[3,2], %k: i64)
    %go = scalar_gt %k, %zero : bool
    %r = if %go : f64[3,2] {
      %rest = scalar_sub %k, %one : i64
      %t = call %s, %rest {callee="add"} : f64[3,2]
      %u = add_to_row %t, %x, %one : f64[3,2]
      yield %u
    } else {
      yield %s
    }
    yield %r
  }
  %r = call %sum, %n {callee="add"} : f64[3,2]
  return %r
})"),
                                        library);
  const Slot x = fake::slot_of(library, vector_of(1, 2));
  const graph::DenseTensor given =
      graph::DenseTensor::of(graph::DType::f64, {3, 2}, {1, 1, 1, 1, 1, 1});
  const Slot sum = fake::slot_of(library, given);
  for (int run = 0; run < 3; ++run) {
    const int allocations = library.allocations;
    std::vector<Slot> results(1);
    ASSERT_FALSE(program->run(std::vector<Slot>{sum, x, Slot::of(int64_t{100})}, {}, results, {}));
    expect_results(results,
                   {graph::DenseTensor::of(graph::DType::f64, {3, 2}, {1, 1, 101, 201, 1, 1})});
    expect_results({&sum, 1}, {given});
    EXPECT_LE(library.allocations - allocations, 2) << run;
  }
}

}  // namespace
}  // namespace janus::execute
