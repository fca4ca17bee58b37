// Random blocks over random shapes, strides and dtypes give exactly what the reference gives.
#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "graph/text.h"
#include "harness.h"
#include "ops/promotion.h"

namespace janus::kernels {
namespace {

namespace op = testing_ops;
using graph::Type;
using graph::Value;

constexpr DType kDTypes[] = {DType::f32, DType::f32, DType::f32,  DType::f64,
                             DType::i64, DType::i32, DType::i16,  DType::i8,
                             DType::u8,  DType::b1,  DType::bf16, DType::f16};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::mt19937& engine() { return engine_; }
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(limit));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <class Range>
  const auto& pick(const Range& range) {
    return range[static_cast<size_t>(below(static_cast<int64_t>(std::size(range))))];
  }

  Element element(DType dtype) {
    if (!graph::is_floating(dtype)) return reference::integral(dtype, below(201) - 100);
    static constexpr double kSpecial[] = {0.0, -0.0, 1.0, INFINITY, -INFINITY, NAN, 1e-42, 3e38};
    if (chance(10)) return reference::floating(dtype, pick(kSpecial));
    return reference::floating(dtype, static_cast<double>(below(20001) - 10000) / 64.0);
  }

  std::vector<int64_t> sizes() {
    static constexpr int64_t kSizes[] = {1, 2, 3, 5, 7, 16, 17, 33, 64, 65};
    std::vector<int64_t> result(static_cast<size_t>(below(5)));
    int64_t count = 1;
    for (int64_t& size : result) {
      size = pick(kSizes);
      while (count * size > 20000) size = (size + 1) / 2;
      count *= size;
    }
    if (!result.empty() && chance(3)) pick_reference(result) = 0;
    return result;
  }

 private:
  int64_t& pick_reference(std::vector<int64_t>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }
  std::mt19937 engine_;
};

DType promoted(std::initializer_list<Value*> values) {
  std::vector<Type> types;
  for (const Value* value : values) types.push_back(value->type);
  return ops::result_type(types);
}

/// A random program: `values` grows by one result of an operator.
void grow(Random& random, op::Fused& fused, std::vector<Value*>& values) {
  Value* a = random.pick(values);
  Value* b = random.pick(values);
  Value* c = random.pick(values);
  const bool has_tensor = a->type.is_tensor() || b->type.is_tensor();
  if (!has_tensor) return;
  const DType both = promoted({a, b});
  const bool floats = graph::is_floating(both), boolean = both == DType::b1;
  switch (random.below(14)) {
    case 0:
      return values.push_back(fused.apply(op::add, {a, b}, both));
    case 1:
      if (!boolean) values.push_back(fused.apply(op::sub, {a, b}, both));
      return;
    case 2:
      return values.push_back(fused.apply(op::mul, {a, b}, both));
    case 3:
      return values.push_back(fused.apply(op::div, {a, b}, ops::floating_result(both)));
    case 4:
      return values.push_back(fused.apply(op::maximum, {a, b}, both));
    case 5:
      if (!boolean && a->type.is_tensor())
        values.push_back(
            fused.apply(op::neg, {a}, promoted({a}) == DType::b1 ? both : promoted({a})));
      return;
    case 6:
      return values.push_back(fused.apply(op::lt, {a, b}, DType::b1));
    case 7:
      return values.push_back(fused.apply(random.chance(50) ? op::eq : op::ne, {a, b}, DType::b1));
    case 8:
      if (c->type.is_tensor() && c->type.dtype == DType::b1)
        values.push_back(fused.apply(op::where, {c, a, b}, both));
      return;
    case 9:
      if (!floats)
        values.push_back(fused.apply(random.chance(50)   ? op::bit_and
                                     : random.chance(50) ? op::bit_or
                                                         : op::bit_xor,
                                     {a, b}, both));
      return;
    case 10:
    case 11:
      if (a->type.is_tensor()) values.push_back(fused.apply(op::to, {a}, random.pick(kDTypes)));
      return;
    case 12:
      if (floats && a->type.is_tensor() && graph::is_floating(a->type.dtype))
        values.push_back(fused.apply(random.chance(50) ? op::sqrt : op::floor, {a}, a->type.dtype));
      return;
    default:
      if (a->type.is_tensor() && a->type.dtype != DType::b1)
        values.push_back(
            fused.apply(random.chance(50) ? op::half_of : op::remainder_by_7, {a}, a->type.dtype));
      return;
  }
}

std::vector<int64_t> broadcast_source(Random& random, std::vector<int64_t> sizes) {
  for (int64_t& size : sizes)
    if (random.chance(20)) size = 1;
  const auto dropped = random.chance(20) ? random.below(static_cast<int64_t>(sizes.size()) + 1) : 0;
  sizes.erase(sizes.begin(), sizes.begin() + dropped);
  return sizes;
}

graph::Shape shape_of(const std::vector<int64_t>& sizes) { return {sizes.begin(), sizes.end()}; }

Layout random_layout(Random& random) {
  return random.chance(50)   ? Layout::contiguous
         : random.chance(50) ? Layout::permuted
                             : Layout::sliced;
}

struct Program {
  op::Fused fused;
  Case c;
  bool usable = false;
};

void make_program(Random& random, Program& program) {
  Case& c = program.c;
  c.sizes = random.sizes();
  std::vector<Value*> values;
  const int64_t tensors = 1 + random.below(4);
  for (int64_t i = 0; i < tensors; ++i) {
    const DType dtype = random.pick(kDTypes);
    const auto sizes = i == 0 ? c.sizes : broadcast_source(random, c.sizes);
    values.push_back(program.fused.tensor(dtype, shape_of(sizes)));
    c.inputs.push_back(make_tensor(dtype, sizes, random_layout(random), random.engine()));
    fill(c.inputs.back(), [&](DType type) { return random.element(type); });
    c.parameter_is_tensor.push_back(true);
  }
  for (Type::Kind kind : {Type::Kind::i64, Type::Kind::f64, Type::Kind::boolean}) {
    if (!random.chance(25)) continue;
    values.push_back(program.fused.number(kind));
    c.numbers.push_back(random.element(kind == Type::Kind::i64   ? DType::i64
                                       : kind == Type::Kind::f64 ? DType::f64
                                                                 : DType::b1));
    c.parameter_is_tensor.push_back(false);
  }
  if (random.chance(30)) values.push_back(program.fused.constant(int64_t{3}));
  if (random.chance(30)) values.push_back(program.fused.constant(0.1));
  const int64_t steps = 1 + random.below(12);
  for (int64_t i = 0; i < steps; ++i) grow(random, program.fused, values);
  std::vector<Value*> results;
  for (auto value = values.rbegin(); value != values.rend() && results.size() < 3; ++value)
    if ((*value)->definition != nullptr && (*value)->type.is_tensor() &&
        (*value)->type.shape == shape_of(c.sizes))
      results.push_back(*value);
  if (results.empty()) return;
  program.usable = true;
  program.fused.finish(results);
  std::vector<bool> overwritten(c.inputs.size(), false);
  for (const Value* result : results) {
    c.outputs.push_back(make_tensor(result->type.dtype, c.sizes,
                                    random.chance(70) ? Layout::contiguous : random_layout(random),
                                    random.engine()));
    c.output_of.push_back(-1);
    for (size_t i = 0; i < c.inputs.size() && c.output_of.back() < 0; ++i)
      if (random.chance(30) && !overwritten[i] && c.inputs[i].dtype == result->type.dtype &&
          c.inputs[i].sizes == c.sizes) {
        c.output_of.back() = static_cast<int>(i);
        overwritten[i] = true;
      }
  }
}

void check_program(unsigned seed) {
  Random random(seed);
  Program program;
  make_program(random, program);
  if (!program.usable) return;
  for (const graph::Node* node : program.fused.block().nodes)
    ASSERT_TRUE(node->op->name == "constant" || can_compile(*node)) << node->op->name;
  const auto expected = expected_results(program.fused.block(), program.c);
  const auto kernel = compile(program.fused.node());
  run(*kernel, program.c);
  const auto actual = actual_results(program.c);
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t p = 0; p < expected[i].size(); ++p) {
      if (expected[i][p].undefined) continue;
      ASSERT_TRUE(reference::same(expected[i][p], actual[i][p]))
          << "seed " << seed << ", output " << i << ", point " << p << ": expected "
          << expected[i][p].number() << ", came " << actual[i][p].number() << "\n"
          << kernel->llvm_text();
    }
}

TEST(RandomKernels, GiveWhatTheReferenceGives) {
  const char* count = std::getenv("RANDOM_KERNELS");
  const unsigned programs = count == nullptr ? 150 : static_cast<unsigned>(std::atoi(count));
  for (unsigned seed = 0; seed < programs; ++seed) {
    set_thread_count(1 + static_cast<int>(seed % 3));
    check_program(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace janus::kernels
