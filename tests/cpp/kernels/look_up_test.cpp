// Kernels that read at indices which tensors hold: the loop nest's text, elements, and what is
// outside.
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "graph/text.h"
#include "kernels/compilation.h"
#include "kernels/lower.h"
#include "kernels/placement.h"
#include "ops/list.h"

namespace janus::kernels {
namespace {

constexpr std::string_view rows_of_a_table = R"(
graph @rows(%table: f32[10,5], %i: i64[4]) {
  %y = fused %table, %i : f32[4,5] { (%t: f32[10,5], %j: i64[4])
    %one = constant {value=1} : i64
    %e = embedding %t, %j : f32[4,5]
    %s = add %e, %e, %one : f32[4,5]
    yield %s
  }
  return %y
})";

constexpr std::string_view elements_from_either_end = R"(
graph @elements(%x: f32[N], %i: i32[4]) {
  %y = fused %x, %i : f32[4] { (%a: f32[N], %j: i32[4])
    %one = constant {value=1} : i64
    %e = index %a, %j : f32[4]
    %s = add %e, %e, %one : f32[4]
    yield %s
  }
  return %y
})";

/// A graph that is one kernel, and a run of it.
class OneKernel {
 public:
  explicit OneKernel(std::string_view text) : graph_(graph::parse(text, ops::table())) {}

  const graph::Node& fused() const { return *graph_.body().nodes.front(); }

  template <class Index>
  std::vector<float> run(std::vector<float> table, std::vector<Index> indices,
                         std::vector<int64_t> table_strides) {
    const auto kernel = compile(fused());
    EXPECT_TRUE(kernel->may_fail());
    const graph::Shape& shape = fused().output()->type.shape;
    std::vector<int64_t> sizes, contiguous(shape.size(), 1);
    for (const graph::Dim& size : shape) sizes.push_back(size.value());
    for (size_t d = sizes.size(); d-- > 1;) contiguous[d - 1] = contiguous[d] * sizes[d];
    std::vector<float> result(static_cast<size_t>(sizes[0] * contiguous[0]), -1);
    const std::vector<int64_t> own[] = {std::move(table_strides), {1}, contiguous};
    const std::vector<int64_t> own_sizes[] = {sizes_of(0), sizes_of(1), sizes};
    void* const data[] = {table.data(), indices.data(), result.data()};
    std::vector<std::vector<int64_t>> strides;
    for (size_t t = 0; t < 3; ++t)
      strides.push_back(
          strides_in_space(sizes.size(), kernel->axes()[t], kernel->map(t), own[t], own_sizes[t]));
    std::vector<TensorOperand> tensors;
    for (size_t t = 0; t < 3; ++t) tensors.push_back({data[t], strides[t].data()});
    kernel->run({sizes, tensors, {}});
    return result;
  }

 private:
  std::vector<int64_t> sizes_of(size_t input) const {
    std::vector<int64_t> sizes;
    for (const graph::Dim& size : fused().inputs[input]->type.shape)
      sizes.push_back(size.evaluate([](const std::string&) { return 6; }).value());
    return sizes;
  }

  graph::Graph graph_;
};

std::vector<float> counted(size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}

TEST(LookUp, NestHasStepsAndConditions) {
  const OneKernel rows(rows_of_a_table);
  EXPECT_EQ(print(lower_block(*rows.fused().blocks.front())), R"(space 2, sizes - -
t0: f32 {at 0; 1}, t1: i64 (0), n0: i64 step t0 0 -> t2: f32 (0 1)
%0 = load t1 : i64
%1 = constant 1 : i64
%2 = constant 10 : i64
%3 = constant 0 : i64
%4 = compare ge %0, %3 : b1
%5 = compare lt %0, %2 : b1
%6 = number n0 : i64
%7 = mul %0, %6 : i64
%8 = bit_and %4, %5 : b1
%9 = look_up t0 %8, %7 : f32
%10 = add %9, %9 : f32
store t2, %10
)");
}

TEST(LookUp, ReadsRowsThatLieInAnyWay) {
  OneKernel rows(rows_of_a_table);
  const std::vector<int64_t> indices = {9, 0, 3, 3};
  const auto in_order = rows.run(counted(50), indices, {5, 1});
  const auto in_columns = rows.run(counted(50), indices, {1, 10});
  for (size_t i = 0; i < 4; ++i) {
    for (size_t k = 0; k < 5; ++k) {
      const auto row = static_cast<float>(indices[i]), column = static_cast<float>(k);
      EXPECT_EQ(in_order[i * 5 + k], 2 * (5 * row + column));
      EXPECT_EQ(in_columns[i * 5 + k], 2 * (row + 10 * column));
    }
  }
}

TEST(LookUp, CountsSubscriptsFromEitherEnd) {
  OneKernel elements(elements_from_either_end);
  const std::vector<int32_t> indices = {-1, -6, 0, 5};
  EXPECT_EQ(elements.run(counted(6), indices, {1}), (std::vector<float>{10, 0, 0, 10}));
}

TEST(LookUp, FailsWhereAnIndexIsOutside) {
  OneKernel rows(rows_of_a_table), elements(elements_from_either_end);
  for (const int64_t outside : {int64_t{-1}, int64_t{10}, INT64_MIN, INT64_MAX})
    for (size_t place = 0; place < 4; ++place) {
      std::vector<int64_t> indices(4, 3);
      indices[place] = outside;
      EXPECT_THROW(rows.run(counted(50), indices, {5, 1}), std::out_of_range);
    }
  for (const int32_t outside : {-7, 6, INT32_MIN, INT32_MAX}) {
    const std::vector<int32_t> indices = {1, 2, 3, outside};
    EXPECT_THROW(elements.run(counted(6), indices, {1}), std::out_of_range);
  }
}

}  // namespace
}  // namespace janus::kernels
