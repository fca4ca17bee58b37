#include "graph/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "graph/builder.h"
#include "graph/quote.h"
#include "ops/list.h"

namespace janus::graph {
namespace {

using testing::HasSubstr;

Graph read(std::string_view text) { return parse(text, ops::table()); }

void expect_round_trip(std::string_view text) {
  const Graph graph = read(text);
  verify(graph);
  EXPECT_EQ(print(graph), text);
}

std::string error_of(std::string_view text) {
  try {
    read(text);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Text, everything_round_trips) {
  expect_round_trip(R"(graph @step(%x: f32[B,784], %y: i64[B], %hot: bool, %n: i64) {
  %w = state {cell="fc.weight"} : f32[784,10]
  %z = mm %x, %w : f32[B,10]
  %a = constant {value=1} : i64
  %s = add %z, %z, %a : f32[B,10]
  %h, %k = if %hot : f32[B,10], i64 {
    %r = relu %s : f32[B,10]
    yield %r, %n
  } else {
    yield %z, %a
  }
  %last = while %n : i64 { (%i: i64)
    yield %hot
  } do { (%j: i64)
    yield %j
  }
  %f = fused %h, %z : f32[B,10] { (%p: f32[B,10], %q: f32[B,10])
    %m = mul %p, %q : f32[B,10]
    yield %m
  }
  guard %hot {id=3, reason="the branch changed"}
  commit %w {cell="fc.weight", versions=2}
  rebind %f {cell="fc.weight.grad"}
  return %h, %last
}
)");
}

TEST(Text, all_types_round_trip) {
  for (const char* text :
       {"f32[B,200]", "f16[]", "bf16[0]", "b1[B*2,min(B,T)]", "i64", "f64", "bool", "str", "none",
        "frame", "object<TreeNode>", "object<\"f.<locals>.Node\">", "tuple<i64,f32[2]>",
        "list<tuple<>>", "c64[$n]"})
    EXPECT_EQ(to_string(parse_type(text)), text);
}

TEST(Text, all_attribute_values_round_trip) {
  const std::string text = R"(graph @g(%x: f32[2]) {
  %y = opaque %x {b=true, dim=dim(B*2), f=0.1, flags=b[1,0], i=-3, inf=-inf, list=[B,-1], n=none, nan=nan, operands="self", operator="aten::op", reals=f[0.5,-0.0], s="a \"quoted\" \\ line\n\x01é", t=bf16, z=-0.0} : f32[2]
  return %y
}
)";
  EXPECT_EQ(print(read(text)), text);
}

TEST(Text, doubles_read_back_to_the_bit) {
  for (const double value : {0.1, 1e300, -5e-324, 1.0, 123456789.0, 1e22, 0.1 + 0.2})
    EXPECT_EQ(std::strtod(number_text(value).c_str(), nullptr), value) << number_text(value);
  EXPECT_EQ(number_text(1.0), "1.0");
  EXPECT_EQ(number_text(-0.0), "-0.0");
  EXPECT_EQ(number_text(1e22), "1e+22");
}

TEST(Text, names_are_made_unique_and_readable) {
  Graph graph("a name with blanks");
  Builder builder(graph);
  Value* x = builder.input(Type::tensor(DType::f32, {2}), "x");
  Value* y = op::detach(builder, {x});
  y->name = "x";
  Value* z = op::detach(builder, {y});
  z->name = "self.fc[0]";
  Value* number = op::detach(builder, {z});
  number->name = "7";
  Value* unnamed = op::detach(builder, {number});
  graph.body().results = {unnamed};
  const std::string text = print(graph);
  EXPECT_EQ(text, R"(graph @"a name with blanks"(%x: f32[2]) {
  %x.1 = detach %x : f32[2]
  %self.fc_0_ = detach %x.1 : f32[2]
  %v7 = detach %self.fc_0_ : f32[2]
  %0 = detach %v7 : f32[2]
  return %0
}
)");
  EXPECT_EQ(print(read(text)), text);
}

TEST(Text, spans_are_comments) {
  Graph graph("g");
  Builder builder(graph);
  Value* x = builder.input(Type::tensor(DType::f32, {}), "x");
  builder.set_span({.file = std::make_shared<const std::string>("train.py"), .line = 12});
  graph.body().results = {op::detach(builder, {x})};
  const std::string text = print(graph, {.spans = true});
  EXPECT_THAT(text, HasSubstr("%0 = detach %x : f32[]  // train.py:12\n"));
  EXPECT_EQ(print(read(text)), print(graph));
}

TEST(Text, values_may_be_named_by_their_operators) {
  const Graph graph = read(R"(graph @g(%x: f32[2]) {
  %0 = constant {value=0.5} : f64
  %y = mul %x, %0 : f32[2]
  %1 = relu %y : f32[2]
  %2 = relu %1 : f32[2]
  return %2
})");
  const PrintOptions options = {.operator_names = true};
  const std::string text = print(graph, options);
  EXPECT_THAT(text, HasSubstr("%c0_5 = constant {value=0.5} : f64\n  %y = mul %x, %c0_5"));
  EXPECT_THAT(text, HasSubstr("%relu.1 = relu %relu : f32[2]\n"));
  EXPECT_EQ(print(read(text), options), text);
  EXPECT_EQ(value_names(graph, options).inputs, std::vector<std::string>{"%x"});
  EXPECT_EQ(value_names(graph, options).results, std::vector<std::string>{"%relu.1"});
}

TEST(Text, defaults_are_left_out_and_filled_in_again) {
  const Graph graph = read(R"(graph @g(%x: bool) {
  guard %x {id=1, reason=""}
  return
})");
  EXPECT_EQ(graph.body().nodes[0]->attributes.get<std::string>("reason"), "");
  EXPECT_THAT(print(graph), HasSubstr("guard %x {id=1}\n"));
  EXPECT_EQ(read(print(graph)).body().nodes[0]->attributes.get<std::string>("reason"), "");
}

TEST(Text, errors_say_where_and_what) {
  EXPECT_EQ(error_of("graph"), "1:6: expected '@', got the end of the text");
  EXPECT_EQ(error_of("graph @g(%x: f33[2]) {}"), "1:14: expected a type, got 'f33[2]) {}'");
  EXPECT_EQ(error_of("graph @g(%x: f32[2]) {\n  %y = nonsense %x : f32[2]\n return\n}"),
            "2:8: expected an operator's name, got 'nonsense %x : f32[2]'");
  EXPECT_EQ(error_of("graph @g(%x: f32[2]) {\n  %y = detach %z : f32[2]\n return\n}"),
            "2:15: no value %z is visible here");
  EXPECT_EQ(error_of("graph @g(%x: f32[2]) {\n  %y = detach %x : f32[3]\n return\n}"),
            "2:3: detach: the result types are f32[2]");
  EXPECT_EQ(error_of("graph @g(%x: f32[2]) {\n  %x = detach %x : f32[2]\n return\n}"),
            "2:3: value %x is defined already");
  EXPECT_EQ(error_of("graph @g(%x: f32[2]) {\n  %y = detach %x, %x : f32[2]\n return\n}"),
            "2:3: detach: expected 1 operands, got 2");
  EXPECT_EQ(error_of("graph @g(%x: f32[2]) {\n  %y = detach %x\n return\n}"),
            "2:3: detach has 1 results but 0 result types");
  EXPECT_EQ(error_of("graph @g(%x: f32[2]) {\n  %y = detach %x {a=1} : f32[2]\n return\n}"),
            "2:3: detach: there is no attribute a");
  EXPECT_EQ(error_of("graph @g(%x: f32[2//0]) {}"), "1:18: division by zero");
  EXPECT_EQ(error_of("graph @g(%x: f32[-2]) {}"),
            "1:14: expected sizes that are not negative, got 'f32[-2]) {}'");
}

TEST(Text, nesting_is_limited) {
  EXPECT_THAT(error_of("graph @g(%x: " + std::string(1000, ' ') + "list<list<" +
                       [] {
                         std::string text;
                         for (int i = 0; i < 10000; ++i) text += "list<";
                         return text;
                       }()),
              HasSubstr("less nesting"));
  EXPECT_THAT(error_of("graph @g(%x: f32[" + std::string(10000, '(')), HasSubstr("less nesting"));
  std::string text = "graph @g(%b: bool) {\n";
  for (int i = 0; i < 1000; ++i) text += "if %b {\n";
  EXPECT_THAT(error_of(text), HasSubstr("fewer nested blocks"));
}

TEST(Text, values_of_a_block_end_with_it) {
  EXPECT_EQ(error_of(R"(graph @g(%b: bool, %x: f32[2]) {
  %y = if %b : f32[2] {
    %inner = detach %x : f32[2]
    yield %inner
  } else {
    yield %inner
  }
  return %y
})"),
            "6:11: no value %inner is visible here");
}

}  // namespace
}  // namespace janus::graph
