// Whole programs over a fake library: values, memory, writes to cells, failures. Every program is
// run several times, since the first run is ordinary and the later ones follow a plan.
#include "execute/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "../fake_library.h"
#include "base/thread_pool.h"
#include "execute/program/picture.h"
#include "graph/text.h"
#include "ops/list.h"

namespace janus::execute {
namespace {

using fake::elements;
using fake::get;
using fake::tensor;
using Floats = std::vector<float>;
using testing::HasSubstr;
using testing::Not;

class ProgramTest : public testing::Test {
 protected:
  std::unique_ptr<Program> compile(const std::string& text) {
    return Program::compile(graph::parse(text, ops::table()), library);
  }

  std::optional<Failure> run(Program& program, const std::vector<Slot>& inputs,
                             const std::vector<Slot>& cells = {}) {
    results.assign(program.graph().results().size(), Slot());
    rebound.assign(program.rebound_cells().size(), Slot());
    return program.run(inputs, cells, results, rebound);
  }

  Floats result(size_t index = 0) { return elements(library, results[index]); }

  fake::Library library;
  std::vector<Slot> results, rebound;
};

constexpr const char* chain = R"(graph @f(%x: f32[2,2], %w: f32[2,2]) {
  %a = mm %x, %w : f32[2,2]
  %b = fused %a : f32[2,2] { (%p: f32[2,2])
    %q = relu %p : f32[2,2]
    yield %q
  }
  %c = mm %b, %w : f32[2,2]
  %d = mm %c, %w : f32[2,2]
  return %d
}
)";

TEST_F(ProgramTest, LaterRunsAllocateOnlyResults) {
  const auto program = compile(chain);
  for (int i = 0; i < 4; ++i) {
    const float n = static_cast<float>(i);
    const Slot x = tensor(library, {2, 2}, {n, -1, 0, 1});
    const Slot w = tensor(library, {2, 2}, {1, 0, 0, 2});
    library.allocations = library.calls = library.calls_into = 0;
    ASSERT_FALSE(run(*program, {x, w}));
    EXPECT_EQ(result(), (Floats{n, 0, 0, 8}));
    if (i == 0) continue;
    EXPECT_EQ(library.allocations, 1);
    EXPECT_EQ(library.calls_into, 3);
    EXPECT_EQ(library.calls, 0);
  }
  EXPECT_THAT(program->describe(), HasSubstr("arena of "));
}

TEST_F(ProgramTest, ThePictureHasTheMemoryOfThePlan) {
  const auto program = compile(chain);
  EXPECT_TRUE(picture_of(*program).plan.order.empty());
  for (int i = 0; i < 3; ++i)
    ASSERT_FALSE(run(
        *program, {tensor(library, {2, 2}, {1, 2, 3, 4}), tensor(library, {2, 2}, {1, 0, 0, 2})}));
  const ProgramPicture picture = picture_of(*program);
  ASSERT_FALSE(picture.plan.memory.empty());
  EXPECT_GT(picture.arena_bytes, 0);
  for (const PieceOfMemory& piece : picture.plan.memory) {
    ASSERT_LT(piece.first, picture.plan.order.size());
    EXPECT_EQ(picture.plan.order[piece.first], piece.maker);
    EXPECT_LE(piece.first, piece.last);
    EXPECT_GE(piece.offset, 0);
    EXPECT_LE(piece.offset + piece.bytes, picture.arena_bytes);
  }
}

TEST_F(ProgramTest, ResultsOfEarlierRunsStayAsTheyWere) {
  const auto program = compile(chain);
  const Slot w = tensor(library, {2, 2}, {1, 0, 0, 1});
  std::vector<Slot> kept;
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(run(*program, {tensor(library, {2, 2}, {1.F * i, 0, 0, 0}), w}));
    kept.push_back(results[0]);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(elements(library, kept[i])[0], 1.F * i);
}

TEST_F(ProgramTest, LeaksNothing) {
  const int before = fake::alive();
  {
    const auto program = compile(chain);
    for (int i = 0; i < 3; ++i) {
      run(*program, {tensor(library, {2, 2}, {1, 2, 3, 4}), tensor(library, {2, 2}, {1, 0, 0, 1})});
    }
    results.clear();
  }
  EXPECT_EQ(fake::alive(), before);
}

constexpr const char* update = R"(graph @step(%g: f32[3], %ok: bool, %lr: f64) {
  %w = state {cell="w"} : f32[3]
  %n = fused %w, %g, %lr : f32[3] { (%p: f32[3], %q: f32[3], %r: f64)
    %m = mul %q, %r : f32[3]
    %one = constant {value=1} : i64
    %s = sub %p, %m, %one : f32[3]
    yield %s
  }
  guard %ok {id=7}
  commit %n {cell="w", versions=2}
  return
}
)";

TEST_F(ProgramTest, WritesCellsInPlaceAfterGuards) {
  const auto program = compile(update);
  const Slot w = tensor(library, {3}, {1, 2, 3});
  const Slot g = tensor(library, {3}, {1, 1, 2});
  for (int i = 0; i < 3; ++i) {
    library.copies = library.allocations = 0;
    ASSERT_FALSE(run(*program, {g, Slot::of(true), Slot::of(0.5)}, {w}));
    if (i == 0) continue;
    EXPECT_EQ(library.copies, 0);
    EXPECT_EQ(library.allocations, 0);
  }
  EXPECT_EQ(elements(library, w), (Floats{-0.5, 0.5, 0}));
  EXPECT_EQ(get(w).version, 6);
}

// Updates of two parameters, by kernels of one text.
constexpr const char* two_updates = R"(graph @step(%g: f32[N], %h: f32[M,2], %lr: f64) {
  %w = state {cell="w"} : f32[N]
  %v = state {cell="v"} : f32[M,2]
  %a = fused %w, %g, %lr : f32[N] { (%p: f32[N], %q: f32[N], %r: f64)
    %m = mul %q, %r : f32[N]
    %one = constant {value=1} : i64
    %s = sub %p, %m, %one : f32[N]
    yield %s
  }
  %b = fused %v, %h, %lr : f32[M,2] { (%p: f32[M,2], %q: f32[M,2], %r: f64)
    %m = mul %q, %r : f32[M,2]
    %one = constant {value=1} : i64
    %s = sub %p, %m, %one : f32[M,2]
    yield %s
  }
  commit %a {cell="w"}
  commit %b {cell="v"}
  return
}
)";

TEST_F(ProgramTest, UpdatesOfAllParametersAreOneStep) {
  const auto program = compile(two_updates);
  const Slot w = tensor(library, {3}, {1, 2, 3}), v = tensor(library, {2, 2}, {4, 5, 6, 7});
  const Slot g = tensor(library, {3}, {1, 1, 2}), h = tensor(library, {2, 2}, {0, 1, 2, 4});
  for (int i = 0; i < 3; ++i) {
    library.copies = 0;
    ASSERT_FALSE(run(*program, {g, h, Slot::of(0.5 * i)}, {w, v}));
    if (i > 0) EXPECT_EQ(library.copies, 0);
  }
  EXPECT_EQ(elements(library, w), (Floats{-0.5, 0.5, 0}));
  EXPECT_EQ(elements(library, v), (Floats{4, 3.5, 3, 1}));
  EXPECT_THAT(program->describe(), HasSubstr("  kernels "));
}

/// For as long as it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }
  ~Threads() { set_thread_count(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

TEST_F(ProgramTest, UpdatesAreSharedOutAmongThreadsTogether) {
  const Threads some(3);
  const auto program = compile(two_updates);
  constexpr int64_t large = 400'003, small = 5;
  const Slot w = tensor(library, {large}, Floats(large, 1));
  const Slot v = tensor(library, {small, 2}, Floats(2 * small, 2));
  Floats steps(large);
  for (int64_t i = 0; i < large; ++i) steps[static_cast<size_t>(i)] = static_cast<float>(i % 7);
  const Slot g = tensor(library, {large}, steps), h = tensor(library, {small, 2}, Floats(10, 3));
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(run(*program, {g, h, Slot::of(0.5)}, {w, v}));
  const Floats changed = elements(library, w);
  for (size_t i = 0; i < changed.size(); ++i) ASSERT_EQ(changed[i], 1 - 1.5F * steps[i]) << i;
  EXPECT_EQ(elements(library, v), Floats(10, 2 - 4.5F));
}

TEST_F(ProgramTest, KernelsThatNeedEachOtherAreNoOneStep) {
  const auto program = compile(R"(graph @step(%g: f32[3]) {
  %w = state {cell="w"} : f32[3]
  %a = fused %w, %g : f32[3] { (%p: f32[3], %q: f32[3])
    %s = mul %p, %q : f32[3]
    yield %s
  }
  %b = fused %a, %w : f32[3] { (%p: f32[3], %q: f32[3])
    %s = mul %p, %q : f32[3]
    yield %s
  }
  %c = fused %b : f32[3] { (%p: f32[3])
    %s = neg %p : f32[3]
    yield %s
  }
  commit %c {cell="w"}
  return %a
}
)");
  const Slot w = tensor(library, {3}, {1, 2, 3});
  const Slot g = tensor(library, {3}, {1, -1, 2});
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(run(*program, {g}, {w}));
  EXPECT_EQ(elements(library, w), (Floats{-1, 256, -839808}));
  EXPECT_THAT(program->describe(), Not(HasSubstr("  kernels ")));
}

TEST_F(ProgramTest, WhatReadsAnOldParameterIsDoneBeforeItIsWritten) {
  const auto program = compile(R"(graph @step(%g: f32[3]) {
  %w = state {cell="w"} : f32[3]
  %v = state {cell="v"} : f32[3]
  %a = fused %v, %w : f32[3] { (%p: f32[3], %q: f32[3])
    %s = mul %p, %q : f32[3]
    yield %s
  }
  %b = fused %w, %g : f32[3] { (%p: f32[3], %q: f32[3])
    %s = mul %p, %q : f32[3]
    yield %s
  }
  commit %a {cell="v"}
  commit %b {cell="w"}
  return
}
)");
  const Slot w = tensor(library, {3}, {1, 2, 3}), v = tensor(library, {3}, {1, 1, 1});
  const Slot g = tensor(library, {3}, {1, -1, 2});
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(run(*program, {g}, {w, v}));
  EXPECT_EQ(elements(library, w), (Floats{1, -2, 24}));
  EXPECT_EQ(elements(library, v), (Floats{1, -8, 216}));
  EXPECT_THAT(program->describe(), Not(HasSubstr("  kernels ")));
}

TEST_F(ProgramTest, FailedGuardChangesNothing) {
  const auto program = compile(update);
  const Slot w = tensor(library, {3}, {1, 2, 3});
  const Slot g = tensor(library, {3}, {1, 1, 2});
  for (int i = 0; i < 3; ++i) {
    const Floats before = elements(library, w);
    const auto failure = run(*program, {g, Slot::of(false), Slot::of(0.5)}, {w});
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Failure::Kind::guard);
    EXPECT_EQ(failure->guard, 7);
    EXPECT_EQ(elements(library, w), before);
    ASSERT_FALSE(run(*program, {g, Slot::of(true), Slot::of(0.5)}, {w}));
  }
  EXPECT_EQ(get(w).version, 6);
}

TEST_F(ProgramTest, FailedOperatorChangesNothing) {
  const auto program = compile(R"(graph @step(%x: f32[2,2]) {
  %w = state {cell="w"} : f32[2,2]
  %n = fused %w, %x : f32[2,2] { (%p: f32[2,2], %q: f32[2,2])
    %one = constant {value=1} : i64
    %s = add %p, %q, %one : f32[2,2]
    yield %s
  }
  commit %n {cell="w"}
  %r = rand_like %x : f32[2,2]
  %y = mm %x, %r : f32[2,2]
  return %y
}
)");
  const Slot x = tensor(library, {2, 2}, {1, 1, 1, 1});
  const Slot w = tensor(library, {2, 2}, {0, 0, 0, 0});
  for (int i = 0; i < 3; ++i) {
    const int drawn = library.random_state_now;
    library.throw_in = "mm";
    const auto failure = run(*program, {x}, {w});
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Failure::Kind::operation);
    EXPECT_EQ(failure->message, "it failed");
    EXPECT_EQ(library.random_state_now, drawn);
    EXPECT_EQ(elements(library, w)[0], 1.F * i);
    library.throw_in.clear();
    ASSERT_FALSE(run(*program, {x}, {w}));
    EXPECT_EQ(library.random_state_now, drawn + 4);
  }
}

TEST_F(ProgramTest, CopiesWhereOldContentsAreReadLater) {
  const auto program = compile(R"(graph @step(%x: f32[2,2]) {
  %w = state {cell="w"} : f32[2,2]
  %n = fused %w, %x : f32[2,2] { (%p: f32[2,2], %q: f32[2,2])
    %one = constant {value=1} : i64
    %s = add %p, %q, %one : f32[2,2]
    yield %s
  }
  %y = mm %n, %w : f32[2,2]
  commit %n {cell="w"}
  return %y
}
)");
  const Slot x = tensor(library, {2, 2}, {1, 0, 0, 1});
  const Slot w = tensor(library, {2, 2}, {1, 0, 0, 1});
  float value = 1;
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(run(*program, {x}, {w}));
    EXPECT_EQ(result()[0], value * (value + 1));
    value += 1;
    EXPECT_EQ(elements(library, w)[0], value);
  }
}

TEST_F(ProgramTest, SwapsCells) {
  const auto program = compile(R"(graph @swap() {
  %a = state {cell="a"} : f32[2]
  %b = state {cell="b"} : f32[2]
  commit %b {cell="a"}
  commit %a {cell="b"}
  return %a
}
)");
  const Slot a = tensor(library, {2}, {1, 1});
  const Slot b = tensor(library, {2}, {2, 2});
  for (int i = 0; i < 4; ++i) {
    const Floats old_a = elements(library, a), old_b = elements(library, b);
    ASSERT_FALSE(run(*program, {}, {a, b}));
    EXPECT_EQ(elements(library, a), old_b);
    EXPECT_EQ(elements(library, b), old_a);
    EXPECT_EQ(result(), old_a);
  }
}

TEST_F(ProgramTest, ViewsFollowTheirRoots) {
  const auto program = compile(R"(graph @f(%x: f32[2,3]) {
  %w = state {cell="w"} : f32[2,3]
  %wt = t %w : f32[3,2]
  %a = mm %x, %wt : f32[2,2]
  %at = t %a : f32[2,2]
  %c = clone %at : f32[2,2]
  %ct = t %c : f32[2,2]
  %y = mm %ct, %at : f32[2,2]
  %yt = t %y : f32[2,2]
  return %yt, %wt
}
)");
  for (int i = 0; i < 4; ++i) {  // another tensor as cell each time
    const float n = static_cast<float>(i + 1);
    const Slot w = tensor(library, {2, 3}, {n, 0, 0, 0, 1, 0});
    const Slot x = tensor(library, {2, 3}, {1, 2, 3, 4, 5, 6});
    library.calls = 0;
    ASSERT_FALSE(run(*program, {x}, {w}));
    // a = [[n, 2], [4n, 5]], y = a a^T
    EXPECT_EQ(result(), (Floats{n * n + 4, 4 * n * n + 10, 4 * n * n + 10, 16 * n * n + 25}));
    EXPECT_EQ(get(results[0]).layout.strides, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(library.storage(results[1]), library.storage(w));
    if (i > 0) EXPECT_EQ(library.calls, 1);  // clone
  }
}

/// An operator that makes its two results itself, used by one that is told where to write.
constexpr const char* two_results = R"(graph @f(%x: f32[2,2]) {
  %a, %b = opaque %x {operands="self", operator="aten::two"} : f32[2,2], f32[2,2]
  %c = mm %a, %b : f32[2,2]
  %d = mm %b, %a : f32[2,2]
  return %c, %d
}
)";

class PlacementTest : public ProgramTest, public testing::WithParamInterface<fake::Placing> {};

TEST_P(PlacementTest, ResultsEndUpWhereTheyArePlanned) {
  library.placing = GetParam();
  const auto program = compile(two_results);
  for (int i = 0; i < 4; ++i) {
    const float n = static_cast<float>(i);
    library.copies = library.allocations = 0;
    ASSERT_FALSE(run(*program, {tensor(library, {2, 2}, {n, 0, 0, 1})}));
    // a = x + 1, b = 2 x
    EXPECT_EQ(result(0), (Floats{2 * (n + 1) * n, 2, 2 * n, 4}));
    EXPECT_EQ(result(1), (Floats{2 * n * (n + 1), 2 * n, 2, 4}));
    if (i > 0 && GetParam() == fake::Placing::exact) EXPECT_EQ(library.copies, 0);
  }
  EXPECT_THAT(program->describe(), HasSubstr("(placed)"));
}

TEST_P(PlacementTest, NothingLeaks) {
  library.placing = GetParam();
  const int before = fake::alive();
  {
    const auto program = compile(two_results);
    for (int i = 0; i < 3; ++i)
      ASSERT_FALSE(run(*program, {tensor(library, {2, 2}, {1, 2, 3, 4})}));
    results.clear();
  }
  EXPECT_EQ(fake::alive(), before);
}

INSTANTIATE_TEST_SUITE_P(Libraries, PlacementTest,
                         testing::Values(fake::Placing::none, fake::Placing::exact,
                                         fake::Placing::swapped, fake::Placing::transposed));

TEST_F(ProgramTest, IndependentProductsRunSideBySide) {
  library.products_run_beside = true;
  const Threads some(2);
  const auto program = compile(R"(graph @f(%x: f32[2,2], %w: f32[2,2]) {
  %a = mm %x, %w : f32[2,2]
  %at = t %a : f32[2,2]
  %b = mm %a, %w : f32[2,2]
  %c = mm %at, %x : f32[2,2]
  %d = mm %b, %c : f32[2,2]
  return %d
}
)");
  for (int i = 0; i < 20; ++i) {
    const float n = static_cast<float>(i % 3);
    const Slot x = tensor(library, {2, 2}, {1, n, 0, 1});
    const Slot w = tensor(library, {2, 2}, {2, 0, 1, 1});
    ASSERT_FALSE(run(*program, {x, w}));
    // a = [[2 + n, n], [1, 1]], b = [[4 + 3 n, n], [3, 1]], c = [[2 + n, 2 n + n^2 + 1], [n, n^2 +
    // 1]]
    const float c00 = 2 + n, c01 = 2 * n + n * n + 1, c10 = n, c11 = n * n + 1;
    EXPECT_EQ(result(), (Floats{(4 + 3 * n) * c00 + n * c10, (4 + 3 * n) * c01 + n * c11,
                                3 * c00 + c10, 3 * c01 + c11}));
  }
  EXPECT_GT(library.groups, 0);
  EXPECT_THAT(program->describe(), HasSubstr(" beside "));
}

/// Four products of x, the last of which needs the first two and a view.
constexpr const char* several_products = R"(graph @f(%x: f32[2,2], %w: f32[2,2]) {
  %a = mm %x, %w : f32[2,2]
  %b = mm %w, %x : f32[2,2]
  %xt = t %x : f32[2,2]
  %c = mm %xt, %w : f32[2,2]
  %d = mm %a, %b : f32[2,2]
  %e = mm %d, %c : f32[2,2]
  return %e
}
)";

TEST_F(ProgramTest, AsManyProductsRunSideBySideAsThereAreThreads) {
  library.products_run_beside = true;
  for (const int threads : {2, 3, 4}) {
    const Threads some(threads);
    library.largest_group = 0;
    const auto program = compile(several_products);
    for (int i = 0; i < 20; ++i) {
      const float n = static_cast<float>(i % 3);
      const Slot x = tensor(library, {2, 2}, {1, n, 0, 1});
      const Slot w = tensor(library, {2, 2}, {2, 0, 1, 1});
      ASSERT_FALSE(run(*program, {x, w}));
      // a = [[2 + n, n], [1, 1]], b = [[2, 2 n], [1, n + 1]], c = [[2, 0], [2 n + 1, 1]]
      const float d00 = 2 * (2 + n) + n, d01 = 2 * n * (2 + n) + n * (n + 1), d10 = 3,
                  d11 = 3 * n + 1;
      EXPECT_EQ(result(),
                (Floats{2 * d00 + (2 * n + 1) * d01, d01, 2 * d10 + (2 * n + 1) * d11, d11}));
    }
    // The other two each need one before them.
    EXPECT_EQ(library.largest_group, static_cast<size_t>(std::min(threads, 3)));
  }
}

TEST_F(ProgramTest, HowProductsRunIsFoundOutAnewForOtherThreads) {
  library.products_run_beside = true;
  const Threads some(2);
  const auto program = compile(several_products);
  const auto groups_of_runs = [&](int threads) {
    const Threads others(threads);
    library.groups = 0;
    for (int i = 0; i < 8; ++i) {
      const Slot x = tensor(library, {2, 2}, {1, 0, 0, 1});
      EXPECT_FALSE(run(*program, {x, x}));
      EXPECT_EQ(result(), (Floats{1, 0, 0, 1}));
    }
    return library.groups;
  };
  EXPECT_GT(groups_of_runs(2), 0);
  EXPECT_EQ(groups_of_runs(1), 0);
  EXPECT_GE(groups_of_runs(3), 4);
}

TEST_F(ProgramTest, ProductsThatNeedEachOtherRunOneAfterTheOther) {
  library.products_run_beside = true;
  const auto program = compile(chain);
  for (int i = 0; i < 12; ++i) {
    const Slot x = tensor(library, {2, 2}, {1, 2, 3, 4});
    ASSERT_FALSE(run(*program, {x, x}));
    EXPECT_EQ(result(), (Floats{199, 290, 435, 634}));
  }
  EXPECT_EQ(library.groups, 0);
}

TEST_F(ProgramTest, ReboundValuesHaveMemoryOfTheirOwn) {
  const auto program = compile(R"(graph @f(%x: f32[2,2]) {
  %g = fused %x : f32[2,2] { (%p: f32[2,2])
    %q = neg %p : f32[2,2]
    yield %q
  }
  %gt = t %g : f32[2,2]
  rebind %g {cell="a.grad"}
  rebind %g {cell="b.grad"}
  rebind %gt {cell="c.grad"}
  rebind %x {cell="d.grad"}
  %none = constant {value=none} : none
  rebind %none {cell="e.grad"}
  return
}
)");
  const Slot x = tensor(library, {2, 2}, {1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(run(*program, {x}, std::vector<Slot>(5)));
    std::vector<const void*> storages{library.storage(x)};
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_TRUE(get(rebound[k]).layout.is_contiguous());
      const void* storage = library.storage(rebound[k]);
      EXPECT_EQ(std::count(storages.begin(), storages.end(), storage), 0);
      storages.push_back(storage);
    }
    EXPECT_EQ(elements(library, rebound[0]), (Floats{-1, -2, -3, -4}));
    EXPECT_EQ(elements(library, rebound[2]), (Floats{-1, -3, -2, -4}));
    EXPECT_EQ(elements(library, rebound[3]), (Floats{1, 2, 3, 4}));
    EXPECT_TRUE(rebound[4].is_none());
  }
}

/// A loss that may fail, gradients after it.
constexpr const char* gradients = R"(graph @f(%x: f32[2,2], %w: f32[2,2]) {
  %y = clone %x : f32[2,2]
  %a = mm %y, %w : f32[2,2]
  %b, %c = opaque %a {operands="self", operator="aten::two"} : f32[2,2], f32[2,2]
  %d = fused %b : f32[2,2] { (%p: f32[2,2])
    %q = neg %p : f32[2,2]
    yield %q
  }
  rebind %a {cell="a.grad"}
  rebind %b {cell="b.grad"}
  rebind %c {cell="c.grad"}
  rebind %d {cell="d.grad"}
  return
}
)";

class ReplacingTest : public PlacementTest {
 protected:
  static constexpr size_t count = 4;
  /// As a caller does: the cells are `held`, and new values take their place.
  std::optional<Failure> step(Program& program, float n) {
    rebound = held;
    auto failure = program.run(std::vector{tensor(library, {2, 2}, {n, 0, 0, n}), eye},
                               std::vector<Slot>(count), {}, rebound);
    if (!failure) held = rebound;
    rebound.clear();
    return failure;
  }

  void expect(float n) {
    EXPECT_EQ(elements(library, held[0]), (Floats{n, 0, 0, n}));
    EXPECT_EQ(elements(library, held[1]), (Floats{n + 1, 1, 1, n + 1}));
    EXPECT_EQ(elements(library, held[2]), (Floats{2 * n, 0, 0, 2 * n}));
    EXPECT_EQ(elements(library, held[3]), (Floats{-n - 1, -1, -1, -n - 1}));
  }

  std::vector<const void*> tensors() const {
    std::vector<const void*> handles;
    for (const Slot& slot : held) handles.push_back(slot.tensor());
    return handles;
  }

  Slot eye = tensor(library, {2, 2}, {1, 0, 0, 1});
  std::vector<Slot> held = std::vector<Slot>(count);
};

TEST_P(ReplacingTest, ValuesAreComputedIntoThoseThatTheyReplace) {
  library.placing = GetParam();
  library.certain = {"mm", "opaque"};
  const auto program = compile(gradients);
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(step(*program, static_cast<float>(i)));
  for (int i = 3; i < 6; ++i) {
    const auto before = tensors();
    ASSERT_FALSE(step(*program, static_cast<float>(i)));
    EXPECT_EQ(tensors(), before);
    expect(static_cast<float>(i));
  }
}

TEST_P(ReplacingTest, WhatSomebodySeesIsNotReplaced) {
  library.placing = GetParam();
  library.certain = {"mm", "opaque"};
  const auto program = compile(gradients);
  std::vector<Slot> seen, shared;
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(step(*program, static_cast<float>(i)));
    expect(static_cast<float>(i));
    seen.push_back(held[1]);
    shared.push_back(library.share(held[2], 0, library.layout(held[2])));
  }
  for (int i = 0; i < 5; ++i) {
    const float n = static_cast<float>(i);
    EXPECT_EQ(elements(library, seen[i]), (Floats{n + 1, 1, 1, n + 1}));
    EXPECT_EQ(elements(library, shared[i]), (Floats{2 * n, 0, 0, 2 * n}));
  }
}

TEST_P(ReplacingTest, NothingIsReplacedBeforeTheLastThingThatMayFail) {
  library.placing = GetParam();
  library.certain = {"mm"};
  const auto program = compile(gradients);
  for (int i = 0; i < 4; ++i) ASSERT_FALSE(step(*program, static_cast<float>(i)));
  library.throw_in = "opaque";
  const auto failure = step(*program, 9);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, Failure::Kind::operation);
  expect(3);
  library.throw_in.clear();
  ASSERT_FALSE(step(*program, 5));
  expect(5);
}

TEST_P(ReplacingTest, AFailureInTheCertainPartIsAnError) {
  library.placing = GetParam();
  library.certain = {"mm", "opaque"};
  const auto program = compile(gradients);
  for (int i = 0; i < 4; ++i) ASSERT_FALSE(step(*program, static_cast<float>(i)));
  library.throw_in = "opaque";
  const auto failure = step(*program, 9);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, Failure::Kind::broken);
  library.throw_in.clear();
  ASSERT_FALSE(step(*program, 5));
  expect(5);
}

INSTANTIATE_TEST_SUITE_P(Libraries, ReplacingTest,
                         testing::Values(fake::Placing::none, fake::Placing::exact,
                                         fake::Placing::swapped, fake::Placing::transposed));

TEST_F(ProgramTest, CellsAreWrittenAsSoonAsNothingCanFail) {
  library.certain = {"mm"};
  const auto program = compile(R"(graph @step(%g: f32[2,2], %steps: i64) {
  %w = state {cell="w"} : f32[2,2]
  %n = fused %w, %g : f32[2,2] { (%p: f32[2,2], %q: f32[2,2])
    %one = constant {value=1} : i64
    %s = sub %p, %q, %one : f32[2,2]
    yield %s
  }
  %y = mm %n, %g : f32[2,2]
  %next = scalar_mul %steps, %steps : i64
  commit %n {cell="w"}
  return %y, %next
}
)");
  const Slot w = tensor(library, {2, 2}, {9, 9, 9, 9});
  const Slot g = tensor(library, {2, 2}, {1, 0, 0, 2});
  for (int i = 0; i < 4; ++i) {
    library.copies = 0;
    ASSERT_FALSE(run(*program, {g, Slot::of(int64_t{3})}, {w}));
    const float n = static_cast<float>(9 - i);
    EXPECT_EQ(elements(library, w), (Floats{n - 1, 9, 9, 9 - 2.F * (i + 1)}));
    EXPECT_EQ(result(), (Floats{n - 1, 18, 9, 2 * (9 - 2.F * (i + 1))}));
    EXPECT_EQ(results[1].i64(), 9);
    if (i > 0) EXPECT_EQ(library.copies, 0);
  }
  const auto failure = run(*program, {g, Slot::of(int64_t{1} << 40)}, {w});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, Failure::Kind::overflow);
  EXPECT_EQ(elements(library, w), (Floats{5, 9, 9, 1}));
}

TEST_F(ProgramTest, RunsWithVaryingSizes) {
  const auto program = compile(R"(graph @f(%x: f32[B,2], %w: f32[2,2]) {
  %a = mm %x, %w : f32[B,2]
  %n = size {of=dim(B)} : i64
  %y = fused %a, %n : f32[B,2] { (%p: f32[B,2], %q: i64)
    %r = mul %p, %q : f32[B,2]
    yield %r
  }
  return %y, %n
}
)");
  const Slot w = tensor(library, {2, 2}, {1, 0, 0, 1});
  for (int i = 0; i < 12; ++i) {
    const int64_t rows = 2 + i % 3;
    const Slot x = tensor(library, {rows, 2}, Floats(static_cast<size_t>(2 * rows), 1.F));
    ASSERT_FALSE(run(*program, {x, w}));
    EXPECT_EQ(result(), Floats(static_cast<size_t>(2 * rows), static_cast<float>(rows)));
    EXPECT_EQ(results[1].i64(), rows);
  }
}

TEST_F(ProgramTest, KeepsPlansOfManySizes) {
  const auto program = compile(R"(graph @f(%x: f32[B], %y: f32[B]) {
  %a = fused %x, %y : f32[B] { (%p: f32[B], %q: f32[B])
    %r = mul %p, %q : f32[B]
    yield %r
  }
  %b = fused %a, %y : f32[B] { (%p: f32[B], %q: f32[B])
    %r = mul %p, %q : f32[B]
    yield %r
  }
  return %b
}
)");
  for (int round = 0; round < 3; ++round) {
    for (int64_t size = 2; size < 102; ++size) {
      const Slot x = tensor(library, {size}, Floats(static_cast<size_t>(size), 2));
      library.allocations = 0;
      ASSERT_FALSE(run(*program, {x, x}));
      EXPECT_EQ(result(), Floats(static_cast<size_t>(size), 8));
      if (round == 2) EXPECT_EQ(library.allocations, 1) << "of size " << size;
    }
  }
}

TEST_F(ProgramTest, OnlyTheSizesOfTheLastRunHoldTensors) {
  const auto program = compile(R"(graph @f(%x: f32[B], %n: i64) {
  %zero = constant {value=0} : i64
  %y, %i = while %x, %zero : f32[B], i64 { (%y0: f32[B], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%y1: f32[B], %i1: i64)
    %one = constant {value=1} : i64
    %i2 = scalar_add %i1, %one : i64
    %t = fused %y1 : f32[B] { (%p: f32[B])
      %q = add %p, %p, %one : f32[B]
      yield %q
    }
    yield %t, %i2
  }
  return %y
}
)");
  const int before = fake::alive();
  int alive = 0;
  for (int round = 0; round < 3; ++round) {
    for (int64_t size = 16'375; size <= 16'384; ++size) {  // nearly too large to be kept at all
      const Slot x = tensor(library, {size}, Floats(static_cast<size_t>(size), 1));
      ASSERT_FALSE(run(*program, {x, Slot::of(int64_t{4})}));
      EXPECT_EQ(result(), Floats(static_cast<size_t>(size), 16));
      results.clear();
      if (round == 0 && size == 16'375) alive = fake::alive();
      EXPECT_EQ(fake::alive(), alive) << "of size " << size << " in round " << round;
    }
  }
  EXPECT_GT(alive, before + 1);  // the loop's, for another run of these sizes
}

TEST_F(ProgramTest, RunsControlFlow) {
  const auto program = compile(R"(graph @f(%x: f32[2,2], %hot: bool) {
  %y = if %hot : f32[2,2] {
    %a = mm %x, %x : f32[2,2]
    yield %a
  } else {
    yield %x
  }
  return %y
}
)");
  const Slot x = tensor(library, {2, 2}, {2, 0, 0, 3});
  for (int i = 0; i < 4; ++i) {
    ASSERT_FALSE(run(*program, {x, Slot::of(i % 2 == 0)}));
    EXPECT_EQ(result(), i % 2 == 0 ? (Floats{4, 0, 0, 9}) : (Floats{2, 0, 0, 3}));
  }
}

}  // namespace
}  // namespace janus::execute
