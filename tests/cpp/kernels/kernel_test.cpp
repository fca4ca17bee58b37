// Kernels on chosen cases: functions, in-place, threads, the cache, refusals, the emitted text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/options.h"
#include "base/thread_pool.h"
#include "harness.h"
#include "jit/jit.h"
#include "kernels/emit.h"
#include "kernels/functions.h"
#include "kernels/lower.h"

namespace janus::kernels {
namespace {

namespace op = testing_ops;
using graph::Shape;
using graph::Type;
using graph::Value;

std::mt19937& engine() {
  static std::mt19937 instance(1);
  return instance;
}

Tensor f32_tensor(std::vector<int64_t> sizes, Layout layout = Layout::contiguous) {
  Tensor tensor = make_tensor(DType::f32, std::move(sizes), layout, engine());
  fill(tensor, [](DType dtype) {
    return reference::floating(dtype, static_cast<double>(engine()() % 2001) / 100.0 - 10);
  });
  return tensor;
}

void expect_same(const std::vector<std::vector<Element>>& expected,
                 const std::vector<std::vector<Element>>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].size(), actual[i].size());
    for (size_t p = 0; p < expected[i].size(); ++p)
      ASSERT_TRUE(reference::same(expected[i][p], actual[i][p]))
          << "output " << i << ", point " << p << ": expected " << expected[i][p].number()
          << ", came " << actual[i][p].number();
  }
}

void expect_right(op::Fused& fused, Case& c) {
  const auto expected = expected_results(fused.block(), c);
  run(*compile(fused.node()), c);
  expect_same(expected, actual_results(c));
}

/// (a + b) * a over a space, b broadcast to it; the result contiguous or in place of a.
void check_broadcast(std::vector<int64_t> sizes, std::vector<int64_t> other, Layout layout,
                     bool in_place) {
  op::Fused fused;
  Value* a = fused.tensor(DType::f32, Shape(sizes.begin(), sizes.end()));
  Value* b = fused.tensor(DType::f32, Shape(other.begin(), other.end()));
  Value* sum = fused.apply(op::add, {a, b}, DType::f32);
  fused.finish({fused.apply(op::mul, {sum, a}, DType::f32)});
  Case c{.sizes = sizes,
         .inputs = {f32_tensor(sizes, layout), f32_tensor(other)},
         .parameter_is_tensor = {true, true},
         .outputs = {f32_tensor(sizes)},
         .output_of = {in_place ? 0 : -1}};
  SCOPED_TRACE(testing::PrintToString(sizes) + testing::PrintToString(other));
  expect_right(fused, c);
}

TEST(Kernel, BroadcastsRowsColumnsAndScalars) {
  for (const int64_t rows : {1, 2, 5, 50})
    for (const int64_t columns : {1, 3, 10, 16, 17, 64, 100})
      for (const bool in_place : {false, true}) {
        check_broadcast({rows, columns}, {rows, columns}, Layout::contiguous, in_place);
        check_broadcast({rows, columns}, {columns}, Layout::contiguous, in_place);
        check_broadcast({rows, columns}, {rows, 1}, Layout::contiguous, in_place);
        check_broadcast({rows, columns}, {}, Layout::permuted, in_place);
        check_broadcast({rows, columns}, {1, columns}, Layout::sliced, in_place);
      }
}

TEST(Kernel, RunsOnEmptyAndScalarSpaces) {
  check_broadcast({}, {}, Layout::contiguous, false);
  check_broadcast({0}, {0}, Layout::contiguous, false);
  check_broadcast({3, 0, 2}, {2}, Layout::contiguous, false);
  check_broadcast({1, 1, 1}, {1}, Layout::contiguous, true);
}

TEST(Kernel, RunsOverManyDimensions) {
  check_broadcast({2, 3, 4, 5, 6}, {4, 1, 6}, Layout::permuted, false);
  check_broadcast({3, 2, 3, 2, 3, 2, 3}, {3, 1, 3, 1, 3}, Layout::permuted, true);
}

/// tanh(a + b), costly enough to be shared out, in place of a.
GuardedBytes result_on_threads(int threads, std::vector<int64_t> sizes, std::vector<int64_t> other,
                               Layout layout) {
  engine().seed(7);
  op::Fused fused;
  Value* a = fused.tensor(DType::f32, Shape(sizes.begin(), sizes.end()));
  Value* b = fused.tensor(DType::f32, Shape(other.begin(), other.end()));
  Value* sum = fused.apply(op::add, {a, b}, DType::f32);
  fused.finish({fused.apply(op::call1, {sum}, DType::f32, {{"function", std::string("tanh")}})});
  Case c{.sizes = sizes,
         .inputs = {f32_tensor(sizes, layout), f32_tensor(other)},
         .parameter_is_tensor = {true, true},
         .outputs = {f32_tensor(sizes)},
         .output_of = {0}};
  set_thread_count(threads);
  run(*compile(fused.node()), c);
  return c.inputs[0].buffer;
}

TEST(Kernel, GivesTheSameOnAnyNumberOfThreads) {
  const auto check = [](std::vector<int64_t> sizes, std::vector<int64_t> other, Layout layout) {
    const auto expected = result_on_threads(1, sizes, other, layout);
    for (const int threads : {2, 3, 7})
      EXPECT_TRUE(result_on_threads(threads, sizes, other, layout) == expected)
          << testing::PrintToString(sizes) << " on " << threads << " threads";
  };
  check({100003}, {100003}, Layout::contiguous);
  check({3, 20001}, {20001}, Layout::contiguous);
  check({20001, 3}, {20001, 1}, Layout::permuted);
  check({2, 3, 10001}, {2, 1, 10001}, Layout::permuted);
}

TEST(Kernel, WritesSeveralResults) {
  op::Fused fused;
  Value* a = fused.tensor(DType::f32, {37});
  Value* b = fused.tensor(DType::f32, {37});
  Value* sum = fused.apply(op::add, {a, b}, DType::f32);
  Value* product = fused.apply(op::mul, {a, b}, DType::f32);
  fused.finish({sum, product});
  // Each result takes the place of an input that the other one still needs.
  Case c{.sizes = {37},
         .inputs = {f32_tensor({37}), f32_tensor({37})},
         .parameter_is_tensor = {true, true},
         .outputs = {f32_tensor({37}), f32_tensor({37})},
         .output_of = {0, 1}};
  expect_right(fused, c);
}

TEST(Kernel, TakesNumbersByValue) {
  op::Fused fused;
  Value* x = fused.tensor(DType::f32, {20});
  Value* rate = fused.number(Type::Kind::f64);
  Value* count = fused.number(Type::Kind::i64);
  Value* flag = fused.number(Type::Kind::boolean);
  Value* scaled = fused.apply(op::mul, {x, rate}, DType::f32);
  Value* shifted = fused.apply(op::add, {scaled, count}, DType::f32);
  fused.finish({fused.apply(op::add, {shifted, flag}, DType::f32)});
  for (const double value : {0.1, -3.0, 1e300}) {
    Case c{.sizes = {20},
           .inputs = {f32_tensor({20})},
           .numbers = {reference::floating(DType::f64, value),
                       reference::integral(DType::i64, 1234567890123),
                       reference::integral(DType::b1, 1)},
           .parameter_is_tensor = {true, false, false, false},
           .outputs = {f32_tensor({20})},
           .output_of = {-1}};
    expect_right(fused, c);
  }
}

TEST(Kernel, DividesIntegersByKnownNumbersOnly) {
  op::Fused fused;
  Value* a = fused.tensor(DType::i64, {4});
  Value* b = fused.tensor(DType::i64, {4});
  Value* known = fused.apply(op::remainder_by_7, {a}, DType::i64);
  Value* unknown = fused.apply(op::integer_divide, {a, b}, DType::i64);
  EXPECT_TRUE(can_compile(op::Fused::node_of(known)));
  EXPECT_FALSE(can_compile(op::Fused::node_of(unknown)));
}

/// Greatest distance from the C library's function in double precision, in units of the last place.
double worst_error(std::string_view function, DType dtype, double low, double high) {
  op::Fused fused;
  Value* x = fused.tensor(dtype, {1001});
  fused.finish({fused.apply(op::call1, {x}, dtype, {{"function", std::string(function)}})});
  Tensor input = make_tensor(dtype, {1001}, Layout::contiguous, engine());
  int64_t i = 0;
  fill(input, [&](DType type) {
    return reference::floating(type, low + (high - low) * static_cast<double>(i++) / 1000.0);
  });
  Case c{.sizes = {1001},
         .inputs = {input},
         .parameter_is_tensor = {true},
         .outputs = {input},
         .output_of = {-1}};
  const auto expected = expected_results(fused.block(), c);
  run(*compile(fused.node()), c);
  const auto actual = actual_results(c);
  double worst = 0;
  for (size_t p = 0; p < 1001; ++p)
    worst = std::max(worst, reference::ulps(actual[0][p], expected[0][p]));
  return worst;
}

TEST(Kernel, FunctionsAreWithinTwoUnitsOfTheLastPlace) {
  struct Range {
    std::string_view function;
    double low, high;
  };
  static constexpr Range kRanges[] = {
      {"exp", -80, 80},   {"exp2", -100, 100}, {"expm1", -5, 5},   {"log", 1e-3, 1e3},
      {"log2", 0.01, 99}, {"log10", 0.01, 99}, {"log1p", -0.9, 9}, {"sin", -10, 10},
      {"cos", -10, 10},   {"tan", -1.5, 1.5},  {"asin", -1, 1},    {"acos", -1, 1},
      {"atan", -9, 9},    {"sinh", -9, 9},     {"cosh", -9, 9},    {"tanh", -9, 9},
      {"asinh", -9, 9},   {"acosh", 1, 99},    {"atanh", -.9, .9}, {"erf", -4, 4},
      {"erfc", -4, 4},    {"cbrt", -9, 9},     {"sqrt", 0, 99},    {"fabs", -9, 9},
      {"ceil", -9, 9},    {"trunc", -9, 9},    {"round", -9, 9},   {"nearbyint", -9, 9},
      {"lgamma", 3, 30}};
  for (const auto& [function, low, high] : kRanges) {
    EXPECT_LE(worst_error(function, DType::f32, low, high), 2) << function;
    EXPECT_LE(worst_error(function, DType::f64, low, high), 2) << function;
  }
}

TEST(Kernel, RefusesWhatItDoesNotHave) {
  op::Fused fused;
  Value* x = fused.tensor(DType::f32, {4});
  Value* complex = fused.tensor(DType::c64, {4});
  const auto refuses = [&](const graph::OpDef& op, Value* input, DType dtype) {
    return !can_compile(op::Fused::node_of(fused.apply(op, {input}, dtype)));
  };
  EXPECT_FALSE(refuses(op::neg, x, DType::f32));
  EXPECT_TRUE(refuses(op::opaque, x, DType::f32));
  EXPECT_TRUE(refuses(op::unknown_function, x, DType::f32));
  EXPECT_TRUE(refuses(op::neg, complex, DType::c64));
  EXPECT_TRUE(refuses(op::neg, fused.tensor(DType::f32, Shape(kMaxRank + 1, 2)), DType::f32));
  options().disabled.insert("kernels");
  EXPECT_TRUE(refuses(op::neg, x, DType::f32));
  options().disabled.clear();
}

op::Fused& scaled_exp(op::Fused& fused) {
  Value* x = fused.tensor(DType::f32, {graph::Dim::symbol("B"), 10});
  Value* bias = fused.tensor(DType::f32, {10});
  Value* sum = fused.apply(op::add, {x, bias}, DType::f32);
  Value* power = fused.apply(op::call1, {sum}, DType::f32, {{"function", std::string("exp")}});
  fused.finish({fused.apply(op::mul, {power, fused.constant(0.5)}, DType::f32)});
  return fused;
}

op::Fused& masked_integers(op::Fused& fused) {
  Value* x = fused.tensor(DType::i64, {5, 7});
  Value* mask = fused.tensor(DType::b1, {5, 1});
  Value* limit = fused.number(Type::Kind::i64);
  Value* small = fused.apply(op::lt, {x, limit}, DType::b1);
  Value* both = fused.apply(op::bit_and, {small, mask}, DType::b1);
  fused.finish({fused.apply(op::where, {both, x, limit}, DType::i64), both});
  return fused;
}

op::Fused& half_precision(op::Fused& fused) {
  Value* x = fused.tensor(DType::bf16, {64});
  Value* y = fused.tensor(DType::f16, {64});
  Value* wide = fused.apply(op::to, {y}, DType::bf16);
  fused.finish({fused.apply(op::add, {x, wide}, DType::bf16)});
  return fused;
}

TEST(Kernel, EqualBlocksShareOneKernel) {
  op::Fused a, b, c;
  const auto first = compile(scaled_exp(a).node());
  EXPECT_EQ(first, compile(scaled_exp(b).node()));
  EXPECT_NE(first, compile(masked_integers(c).node()));
}

TEST(Kernel, SeveralThreadsCompileAndRun) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int64_t size = 1; size < 40; ++size) {
        op::Fused fused;
        Value* x = fused.tensor(DType::f64, {size});
        fused.finish({fused.apply(op::half_of, {x}, DType::f64)});
        std::vector<double> input(static_cast<size_t>(size), 3.0), output(input.size());
        const int64_t stride = 1;
        const TensorOperand tensors[] = {{input.data(), &stride}, {output.data(), &stride}};
        compile(fused.node())->run({std::span(&size, 1), tensors, {}});
        EXPECT_THAT(output, testing::Each(1.5));
      }
    });
  for (auto& thread : threads) thread.join();
}

// --- the text ------------------------------------------------------------------------------------

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The text of a kernel for 64-byte vectors and a library with Sleef's exponential only.
void expect_golden(op::Fused& fused, const std::vector<Walk>& walks, const std::string& name) {
  const Target target{.vector_bytes = 64, .has_function = [](std::string_view function) {
                        return function == "Sleef_expf16_u10";
                      }};
  const std::string text = emit(lower_block(fused.block()), {.walks = walks}, target);
  const std::string path = std::string(TORCHJANUS_SOURCE_DIR) + "/tests/ir/kernels/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, read_file(path)) << "UPDATE_GOLDEN=1 writes " << path << " anew";
}

TEST(KernelText, OfARowBroadcast) {
  op::Fused fused;
  expect_golden(scaled_exp(fused), {Walk::contiguous, Walk::contiguous, Walk::contiguous},
                "scaled_exp.ll");
}

TEST(KernelText, OfAColumnBroadcastWithMask) {
  op::Fused fused;
  expect_golden(masked_integers(fused),
                {Walk::strided, Walk::broadcast, Walk::contiguous, Walk::strided},
                "masked_integers.ll");
}

TEST(KernelText, OfHalfPrecision) {
  op::Fused fused;
  expect_golden(half_precision(fused), {Walk::contiguous, Walk::contiguous, Walk::contiguous},
                "half_precision.ll");
}

TEST(KernelText, CallsVectorFunctionsOrTheLibraryLaneByLane) {
  op::Fused fused;
  Value* x = fused.tensor(DType::f32, {graph::Dim::symbol("N")});
  fused.finish({fused.apply(op::call1, {x}, DType::f32, {{"function", std::string("log")}})});
  const LoopNest nest = lower_block(fused.block());
  const std::vector<Walk> walks(2, Walk::contiguous);
  const std::string without =
      emit(nest, {.walks = walks}, {.vector_bytes = 32, .has_function = {}});
  EXPECT_THAT(without, testing::HasSubstr("call float @logf(float"));
  EXPECT_THAT(without, testing::Not(testing::HasSubstr("Sleef")));
  const Target target{.vector_bytes = 32, .has_function = [](std::string_view) { return true; }};
  EXPECT_THAT(emit(nest, {.walks = walks}, target),
              testing::HasSubstr("call <8 x float> @Sleef_logf8_u10(<8 x float>"));
}

TEST(KernelText, ScalesByPowersOfTwoWhereTheProcessorDoes) {
  op::Fused fused;
  const LoopNest nest = lower_block(scaled_exp(fused).block());
  const std::vector<Walk> walks(3, Walk::contiguous);
  const auto text = [&](int vector_bytes) {
    return emit(nest, {.walks = walks}, {.vector_bytes = vector_bytes, .has_function = {}});
  };
  EXPECT_THAT(text(64), testing::HasSubstr("llvm.x86.avx512.mask.scalef.ps.512"));
  EXPECT_THAT(text(32), testing::Not(testing::HasSubstr("avx512")));
}

/// Of a block that no other test has: equal ones share a kernel, and its text is that of the code
/// that was made last.
std::string text_of_sum(int64_t rows) {
  op::Fused fused;
  Value* a = fused.tensor(DType::f32, {rows, 1024});
  Value* b = fused.tensor(DType::f32, {1024});
  Value* sum = fused.apply(op::add, {a, b}, DType::f32);
  fused.finish(
      {fused.apply(op::mul, {sum, fused.constant(static_cast<double>(rows))}, DType::f32)});
  return compile(fused.node())->llvm_text();
}

TEST(KernelText, FetchesAheadWhereTensorsAreLarge) {
  using testing::HasSubstr;
  using testing::Not;
  EXPECT_THAT(text_of_sum(100), Not(HasSubstr("llvm.prefetch")));
  const std::string large = text_of_sum(4000);
  EXPECT_THAT(large, HasSubstr("@llvm.prefetch.p0(ptr"));
  EXPECT_THAT(large, HasSubstr("%t0.ahead"));
  EXPECT_THAT(large, Not(HasSubstr("%t1.ahead"))) << "a row that all rows use";
}

TEST(KernelText, StoresPastTheCacheWhatIsLargerThanIt) {
  const std::string text = text_of_sum(9000);
  EXPECT_THAT(text, testing::HasSubstr(cat("align ", jit::vector_bytes(), ", !nontemporal !0")));
  EXPECT_THAT(text, testing::HasSubstr("fence seq_cst\n  ret void"));
  EXPECT_THAT(text_of_sum(7000), testing::Not(testing::HasSubstr("nontemporal")));
}

/// x * columns into a place `bytes` behind the beginning of a cache line, `in_place`: over x. The
/// code for either is there before the run.
void check_multiple(int64_t columns, size_t bytes, bool in_place) {
  constexpr int64_t kRows = 9001;
  op::Fused fused;
  Value* x = fused.tensor(DType::f32, {kRows, columns});
  const auto factor = static_cast<float>(columns);
  fused.finish({fused.apply(op::mul, {x, fused.constant(factor)}, DType::f32)});
  const auto count = static_cast<size_t>(kRows * columns);
  std::vector<float> memory(2 * count + 64);
  void* first = memory.data();
  size_t room = memory.size() * sizeof(float);
  auto* source = static_cast<float*>(std::align(64, count * sizeof(float), first, room)) +
                 bytes / sizeof(float);
  float* result = in_place ? source : source + (count + 15) / 16 * 16;
  for (size_t i = 0; i < count; ++i) source[i] = static_cast<float>(i % 1000);
  const int64_t sizes[] = {kRows, columns}, strides[] = {columns, 1};
  const TensorOperand tensors[] = {{source, strides}, {result, strides}};
  const auto kernel = compile(fused.node());
  const std::string made_last = kernel->llvm_text();
  EXPECT_THAT(made_last, testing::HasSubstr("nontemporal"));
  kernel->run({sizes, tensors, {}});
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(result[i], factor * static_cast<float>(i % 1000));
  EXPECT_EQ(kernel->llvm_text(), made_last);
}

TEST(Kernel, StoresPastTheCacheWhereLinesBeginAndNothingIsRead) {
  check_multiple(1024, 0, false);
  check_multiple(1008, 4, false);  // a processor stores past the cache only where lines begin
  check_multiple(992, 0, true);
  check_multiple(1001, 0, false);  // joined to one row
}

TEST(KernelText, FetchesNothingAheadWhereSizesAreNotKnown) {
  op::Fused fused;
  const auto dim = [](const char* name) { return graph::Dim::symbol(name); };
  Value* a = fused.tensor(DType::f32, {dim("A"), dim("B"), dim("C")});
  fused.finish({fused.apply(op::mul, {a, a}, DType::f32)});
  EXPECT_THAT(compile(fused.node())->llvm_text(), testing::Not(testing::HasSubstr("prefetch")));
}

TEST(Kernel, ExponentialsTreatSpecialValuesAsTheLibrary) {
  const float special[] = {0.0f,    -0.0f,    INFINITY, -INFINITY, NAN,    1e-45f,
                           -1e-45f, 1e-38f,   88.7f,    88.73f,    1e30f,  -1e30f,
                           -87.4f,  -95.f,    -103.5f,  -104.5f,   0.625f, 1.0f,
                           -104.f,  -103.97f, -103.98f, -104.0001f};
  for (const char* function : {"exp", "tanh", "erf"}) {
    op::Fused fused;
    Value* x = fused.tensor(DType::f32, {22});
    fused.finish({fused.apply(op::call1, {x}, DType::f32, {{"function", std::string(function)}})});
    Tensor input = make_tensor(DType::f32, {22}, Layout::contiguous, engine());
    std::memcpy(input.buffer.data(), special, sizeof special);
    Case c{.sizes = {22},
           .inputs = {input},
           .parameter_is_tensor = {true},
           .outputs = {input},
           .output_of = {-1}};
    const auto expected = expected_results(fused.block(), c);
    run(*compile(fused.node()), c);
    const auto actual = actual_results(c);
    for (size_t p = 0; p < 22; ++p) {
      EXPECT_LE(reference::ulps(actual[0][p], expected[0][p]), 2) << function << special[p];
      EXPECT_EQ(std::signbit(actual[0][p].floating), std::signbit(expected[0][p].floating))
          << function << special[p];
    }
  }
}

}  // namespace
}  // namespace janus::kernels
