// Shape rules with numbers and with named dimensions, and what they refuse.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/text.h"
#include "ops/list.h"
#include "ops/promotion.h"

namespace janus {
namespace {

using namespace graph;

/// Applies operators to inputs whose types are given as text.
class ShapeRules : public testing::Test {
 protected:
  Value* of(std::string_view type) { return builder_.input(parse_type(type), "x"); }
  Value* number(double value) { return builder_.constant(value); }
  Value* number(int value) { return builder_.constant(static_cast<int64_t>(value)); }

  std::string types(const OpDef& op, std::vector<Value*> inputs, Attributes attributes = {}) {
    const Node* node = builder_.append(op, inputs, std::move(attributes));
    std::string text;
    for (const Value* output : node->outputs)
      text += (text.empty() ? "" : " ") + to_string(output->type);
    return text;
  }
  void refuses(const OpDef& op, std::vector<Value*> inputs, Attributes attributes = {}) {
    EXPECT_THROW(builder_.append(op, inputs, std::move(attributes)), TypeError) << op.name;
  }

  Graph graph_{"test"};
  Builder builder_{graph_};
};

Dim B() { return Dim::symbol("B"); }

TEST_F(ShapeRules, BroadcastsNumbersAndEqualNames) {
  EXPECT_EQ(types(op::add, {of("f32[3,1]"), of("f32[4]")}), "f32[3,4]");
  EXPECT_EQ(types(op::mul, {of("f32[B,1]"), of("f32[1,B]")}), "f32[B,B]");
  EXPECT_EQ(types(op::add, {of("f32[B,4]"), of("f32[]")}), "f32[B,4]");
  refuses(op::mul, {of("f32[3]"), of("f32[4]")});
  refuses(op::mul, {of("f32[B]"), of("f32[T]")});
  refuses(op::mul, {of("f32[B]"), of("f32[4]")});
}

TEST_F(ShapeRules, PromotesAsTorchDoes) {
  EXPECT_EQ(types(op::mul, {of("i64[2]"), of("f32[]")}), "f32[2]");
  EXPECT_EQ(types(op::mul, {of("f32[2]"), of("f64[]")}), "f32[2]");
  EXPECT_EQ(types(op::mul, {of("f16[2]"), of("bf16[2]")}), "f32[2]");
  EXPECT_EQ(types(op::mul, {of("i32[2]"), number(2)}), "i32[2]");
  EXPECT_EQ(types(op::mul, {of("i32[2]"), number(2.0)}), "f32[2]");
  EXPECT_EQ(types(op::mul, {of("b1[2]"), number(2)}), "i64[2]");
  EXPECT_EQ(types(op::mul, {of("f16[2]"), number(2.0)}), "f16[2]");
  EXPECT_EQ(types(op::div, {of("i64[2]"), of("i64[2]")}), "f32[2]");
  EXPECT_EQ(types(op::eq, {of("i64[2]"), number(2.0)}), "b1[2]");
  EXPECT_EQ(types(op::exp, {of("i64[2]")}), "f32[2]");
  EXPECT_EQ(types(op::add, {of("u8[2]"), of("i8[2]")}), "i16[2]");
}

TEST_F(ShapeRules, TheDefaultDtypeIsTheSurroundings) {
  const ops::DefaultDtype scope(DType::f64);
  EXPECT_EQ(types(op::div, {of("i64[2]"), of("i64[2]")}), "f64[2]");
  EXPECT_EQ(types(op::zeros, {}, {{"size", Shape{Dim(2)}}}), "f64[2]");
  EXPECT_EQ(types(op::mul, {of("f32[2]"), number(2.0)}), "f32[2]");
}

TEST_F(ShapeRules, ReshapesWithNamesThatCancel) {
  const auto reshape = [&](std::string_view from, Shape to) {
    return types(op::reshape, {of(from)}, {{"shape", std::move(to)}});
  };
  EXPECT_EQ(reshape("f32[B,16,5,5]", {Dim(-1), Dim(400)}), "f32[B,400]");
  EXPECT_EQ(reshape("f32[B,16,5,5]", {B(), Dim(-1)}), "f32[B,400]");
  EXPECT_EQ(reshape("f32[B,4]", {Dim(-1)}), "f32[B*4]");
  EXPECT_EQ(reshape("f32[B*4]", {B(), Dim(4)}), "f32[B,4]");
  refuses(op::reshape, {of("f32[B,3]")}, {{"shape", Shape{Dim(-1), Dim(2)}}});
  refuses(op::reshape, {of("f32[6]")}, {{"shape", Shape{Dim(4)}}});
  EXPECT_EQ(types(op::flatten, {of("f32[B,16,5,5]")}, {{"start_dim", int64_t{1}}}), "f32[B,400]");
}

TEST_F(ShapeRules, SqueezesOnlyWhatIsKnown) {
  EXPECT_EQ(types(op::squeeze, {of("f32[B,1]")}, {{"dim", Shape{Dim(1)}}}), "f32[B]");
  EXPECT_EQ(types(op::squeeze, {of("f32[B,1]")}, {{"dim", Shape{Dim(0)}}}), "f32[B,1]");
  refuses(op::squeeze, {of("f32[B-1]")}, {{"dim", Shape{Dim(0)}}});
}

TEST_F(ShapeRules, SlicesClampAsPythonDoes) {
  const auto slice = [&](std::string_view from, AttributeValue start, AttributeValue end,
                         int64_t step = 1) {
    return types(op::slice, {of(from)},
                 {{"start", std::move(start)}, {"end", std::move(end)}, {"step", step}});
  };
  EXPECT_EQ(slice("f32[5]", int64_t{1}, int64_t{3}), "f32[2]");
  EXPECT_EQ(slice("f32[5]", int64_t{-2}, None{}), "f32[2]");
  EXPECT_EQ(slice("f32[5]", int64_t{3}, int64_t{1}), "f32[0]");
  EXPECT_EQ(slice("f32[5]", int64_t{0}, int64_t{100}, 2), "f32[3]");
  EXPECT_EQ(slice("f32[B]", int64_t{1}, None{}), "f32[B-1]");
  EXPECT_EQ(slice("f32[B]", None{}, int64_t{-1}), "f32[B-1]");
  const Dim last = remainder(Dim::symbol("n", true), 3) + 1;
  EXPECT_EQ(slice("f32[5]", Dim(0) - last, None{}), "f32[$n%3+1]");
  EXPECT_EQ(slice("f32[B]", None{}, Dim(-1) * Dim::symbol("C")), "f32[min(B,max(0,B-C))]");
  refuses(op::slice, {of("f32[B]")}, {{"start", Dim::symbol("n", true)}, {"end", None{}}});
}

TEST_F(ShapeRules, NarrowTakesAnyStart) {
  EXPECT_EQ(
      types(op::narrow, {of("f32[100,3]")},
            {{"dim", int64_t{0}}, {"start", Dim::symbol("n", true)}, {"length", int64_t{20}}}),
      "f32[20,3]");
  refuses(op::narrow, {of("f32[100,3]")},
          {{"dim", int64_t{0}}, {"start", int64_t{90}}, {"length", int64_t{20}}});
}

TEST_F(ShapeRules, MatrixProducts) {
  EXPECT_EQ(types(op::linear, {of("f32[B,784]"), of("f32[10,784]"), of("f32[10]")}), "f32[B,10]");
  EXPECT_EQ(types(op::matmul, {of("f32[B,2,3]"), of("f32[3,4]")}), "f32[B,2,4]");
  EXPECT_EQ(types(op::matmul, {of("f32[3]"), of("f32[3]")}), "f32[]");
  refuses(op::mm, {of("f32[2,3]"), of("f32[2,3]")});
  refuses(op::mm, {of("f32[2,3]"), of("f64[3,2]")});
  refuses(op::linear, {of("f32[B,784]"), of("f32[10,783]"), builder_.none()});
}

TEST_F(ShapeRules, ConvolutionsAndPools) {
  EXPECT_EQ(types(op::conv2d, {of("f32[B,1,28,28]"), of("f32[20,1,5,5]"), of("f32[20]")}),
            "f32[B,20,24,24]");
  EXPECT_EQ(types(op::conv2d, {of("f32[1,28,28]"), of("f32[20,1,5,5]"), builder_.none()}),
            "f32[20,24,24]");
  EXPECT_EQ(types(op::conv2d, {of("f32[2,1,H,28]"), of("f32[20,1,5,5]"), builder_.none()}),
            "f32[2,20,H-4,24]");
  refuses(op::conv2d, {of("f32[2,3,4,4]"), of("f32[20,1,5,5]"), builder_.none()});
  const Attributes window{{"kernel_size", Shape{Dim(2), Dim(2)}}};
  EXPECT_EQ(types(op::max_pool2d_with_indices, {of("f32[B,20,24,24]")}, window),
            "f32[B,20,12,12] i64[B,20,12,12]");
  refuses(op::max_pool2d_with_indices, {of("f32[2,1,1,1]")}, window);
}

TEST_F(ShapeRules, Reductions) {
  EXPECT_EQ(types(op::sum, {of("i32[B,3]")}), "i64[]");
  EXPECT_EQ(types(op::mean, {of("f32[B,3]")}, {{"dim", Shape{Dim(-1)}}, {"keepdim", true}}),
            "f32[B,1]");
  refuses(op::mean, {of("i64[3]")});
  refuses(op::sum, {of("f32[3]")}, {{"dim", Shape{Dim(1)}}});
  refuses(op::sum, {of("f32[3,3]")}, {{"dim", Shape{Dim(1), Dim(-1)}}});
  EXPECT_EQ(types(op::max_dim, {of("f32[B,3]")}, {{"dim", int64_t{1}}}), "f32[B] i64[B]");
  EXPECT_EQ(types(op::argmax, {of("f32[B,3]")}, {{"dim", int64_t{1}}}), "i64[B]");
}

TEST_F(ShapeRules, JoinsAndIndexes) {
  EXPECT_EQ(types(op::cat, {of("f32[B,3]"), of("f32[2,3]")}), "f32[B+2,3]");
  EXPECT_EQ(types(op::stack, {of("f32[B]"), of("f32[B]")}, {{"dim", int64_t{1}}}), "f32[B,2]");
  EXPECT_EQ(types(op::index, {of("f32[5,4]"), of("i64[B]")}), "f32[B,4]");
  EXPECT_EQ(types(op::index, {of("f32[5,4,3]"), of("i64[B]"), builder_.none(), of("i64[B]")}),
            "f32[B,4]");
  refuses(op::index, {of("f32[5,4]"), of("b1[5]")});
}

TEST_F(ShapeRules, Losses) {
  const auto loss = [&](std::string_view input, std::string_view target) {
    return types(op::functional_cross_entropy,
                 {of(input), of(target), builder_.none(), number(0.0)});
  };
  EXPECT_EQ(loss("f32[B,10]", "i64[B]"), "f32[]");
  EXPECT_EQ(loss("f32[B,10,4]", "i64[B,4]"), "f32[]");
  EXPECT_EQ(loss("f32[B,10]", "f32[B,10]"), "f32[]");
  refuses(op::functional_cross_entropy,
          {of("f32[B,10]"), of("i64[T]"), builder_.none(), number(0.0)});
  refuses(op::functional_mse_loss, {of("f32[3,1]"), of("f32[3]"), builder_.none()});
}

TEST_F(ShapeRules, BatchNormGivesNewStatisticsInTrainingOnly) {
  const auto types_of = [&](bool training) {
    return types(op::functional_batch_norm,
                 {of("f32[B,3,8,8]"), of("f32[3]"), of("f32[3]"), of("f32[3]"), of("f32[3]"),
                  number(0.1), number(1e-5)},
                 {{"training", training}});
  };
  EXPECT_EQ(types_of(true), "f32[B,3,8,8] f32[3] f32[3]");
  EXPECT_EQ(types_of(false), "f32[B,3,8,8] none none");
}

TEST_F(ShapeRules, ComplexTensorsAreLeftToTorch) {
  refuses(op::mul, {of("c64[2]"), of("f32[2]")});
  refuses(op::exp, {of("c64[2]")});
  refuses(op::sum, {of("c64[2]")});
}

}  // namespace
}  // namespace janus
