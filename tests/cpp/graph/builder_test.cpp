#include "graph/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/constant.h"
#include "graph/node_effects.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "ops/list.h"
#include "ops/structure.h"

namespace janus::graph {
namespace {

using testing::HasSubstr;

std::string refusal(const std::function<void()>& build) {
  try {
    build();
  } catch (const TypeError& error) {
    return error.what();
  }
  return "none";
}

class BuilderTest : public testing::Test {
 protected:
  Graph graph{"g"};
  Builder builder{graph};
  Value* x = builder.input(Type::tensor(DType::f32, {Dim::symbol("B"), 3}), "x");
};

TEST_F(BuilderTest, infers_types_and_fills_in_defaults) {
  Value* y = op::add(builder, {x, x});
  EXPECT_EQ(y->type, x->type);
  ASSERT_EQ(y->definition->inputs.size(), 3u) << "alpha, the trailing operand";
  EXPECT_EQ(constant_integer(y->definition->inputs[2]), 1);
  const Node* guard = builder.append(op::guard, {builder.constant(true)}, {{"id", int64_t{0}}});
  EXPECT_EQ(guard->attributes.get<std::string>("reason"), "");
}

TEST_F(BuilderTest, writes_constant_dimensions_as_numbers) {
  const Value* size = op::size(builder, {}, {{"of", Dim(3)}});
  EXPECT_EQ(size->definition->attributes.get<int64_t>("of"), 3);
  const Value* symbolic = op::size(builder, {}, {{"of", Dim::symbol("B")}});
  EXPECT_EQ(symbolic->definition->attributes.get<Dim>("of"), Dim::symbol("B"));
}

TEST_F(BuilderTest, refuses_what_does_not_fit) {
  EXPECT_EQ(refusal([&] { builder.append(op::detach, {}); }), "detach: expected 1 operands, got 0");
  EXPECT_EQ(refusal([&] { builder.append(op::commit, {x}); }),
            "commit: expected the name of a cell");
  EXPECT_EQ(refusal([&] { builder.append(op::commit, {x}, {{"cell", int64_t{1}}}); }),
            "commit: expected the name of a cell");
  const graph::Attributes cell{{"cell", std::string("w")}};
  EXPECT_EQ(refusal([&] { builder.append(op::commit, {x, builder.constant(true)}, cell); }),
            "commit: expected another second operand than bool");
  EXPECT_EQ(refusal([&] { builder.append(op::rebind, {x, builder.constant(1.0)}, cell); }),
            "rebind: expected another second operand than f64");
  EXPECT_EQ(refusal([&] { builder.append(op::detach, {builder.none()}); }),
            "detach: operand self cannot be none");
  EXPECT_EQ(
      refusal([&] { builder.append(op::guard, {builder.constant(1.0)}, {{"id", int64_t{0}}}); }),
      "guard: expected a bool, got f64");
  EXPECT_THROW(builder.append(op::state, {}, {{"cell", std::string("w")}}), InternalError)
      << "its type has to be given";
}

TEST_F(BuilderTest, constants_know_what_they_are) {
  EXPECT_EQ(builder.constant(true)->type, Type::boolean());
  EXPECT_EQ(builder.constant(int64_t{4})->type, Type::i64());
  EXPECT_EQ(builder.constant(0.5)->type, Type::f64());
  EXPECT_EQ(builder.none()->type, Type::none());
  EXPECT_EQ(constant_number(builder.constant(0.5)), 0.5);
  EXPECT_EQ(constant_number(builder.constant(true)), 1.0);
  EXPECT_EQ(constant_number(builder.none()), std::nullopt);
  EXPECT_EQ(constant_value(x), nullptr);
}

TEST_F(BuilderTest, gradients_have_their_targets_types) {
  Value* loss = builder.input(Type::tensor(DType::f32, {}), "loss");
  const Node* node = builder.append(op::gradient, {loss, builder.none(), x},
                                    {{"outputs", int64_t{1}}, {"targets", int64_t{1}}});
  EXPECT_EQ(node->output()->type, x->type);
  EXPECT_THAT(refusal([&] {
                builder.append(op::gradient, {loss, x, x},
                               {{"outputs", int64_t{1}}, {"targets", int64_t{1}}});
              }),
              HasSubstr("seed 0 is f32[B,3], its output f32[]"));
  EXPECT_THAT(refusal([&] {
                builder.append(op::gradient, {loss, x},
                               {{"outputs", int64_t{1}}, {"targets", int64_t{1}}});
              }),
              HasSubstr("expected 1 outputs, as many seeds and 1 targets, got 2 operands"));
}

TEST_F(BuilderTest, opaque_calls_keep_their_arguments) {
  Value* y = builder.input(Type::tensor(DType::i64, {3}), "y");
  const ops::OpaqueCall call{
      .overload = "aten::index_put",
      .operands = {{.name = "self", .values = {x}, .is_list = false},
                   {.name = "indices", .values = {builder.none(), y}, .is_list = true},
                   {.name = "others", .values = {}, .is_list = true},
                   {.name = "values", .values = {x}, .is_list = false}},
      .attributes = {{"accumulate", true}, {"device", std::string("cpu")}}};
  const Node* node = ops::append_opaque(builder, call, {x->type});
  EXPECT_EQ(node->attributes.get<std::string>("operands"), "self,indices*2,others*0,values");
  const ops::OpaqueCall back = ops::opaque_call(node->attributes, node->inputs);
  EXPECT_EQ(back.overload, call.overload);
  ASSERT_EQ(back.operands.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(back.operands[i].name, call.operands[i].name);
    EXPECT_EQ(back.operands[i].values, call.operands[i].values);
    EXPECT_EQ(back.operands[i].is_list, call.operands[i].is_list);
  }
  EXPECT_EQ(back.attributes, call.attributes);
  EXPECT_FALSE(has(effects(*node), Trait::random));
  graph.body().results = {node->output()};
  verify(graph);
  EXPECT_EQ(print(parse(print(graph), ops::table())), print(graph));
}

TEST_F(BuilderTest, layers_of_an_opaque_gradient_fit_together) {
  const std::vector<Value*> operands = {x, x, x};
  const Attributes first = {{"operator", std::string("aten::f")},
                            {"operands", std::string("a,b")},
                            {"results", int64_t{1}},
                            {"_layers", std::string("10")}};
  EXPECT_EQ(builder.append(op::opaque_backward, operands, first)->outputs.size(), 1u);
  Attributes second = first;
  second.set("_layers", std::string("10;101"));
  const std::vector<Value*> more = {x, x, x, x};
  EXPECT_EQ(builder.append(op::opaque_backward, more, second)->outputs.size(), 2u);
  EXPECT_EQ(ops::opaque_layers(second),
            (std::vector<std::vector<bool>>{{true, false}, {true, false, true}}));
  second.set("_layers", std::string("10;11"));
  EXPECT_THAT(refusal([&] { builder.append(op::opaque_backward, more, second); }),
              HasSubstr("expected a layer of 3 flags, got \"11\""));
}

TEST(Effects, come_from_nested_blocks_too) {
  const Graph graph = parse(R"(graph @g(%b: bool, %x: f32[2]) {
  %y = if %b : f32[2] {
    guard %b {id=1}
    yield %x
  } else {
    yield %x
  }
  %z = if %b : f32[2] {
    yield %x
  } else {
    yield %x
  }
  return %y
})",
                            ops::table());
  EXPECT_TRUE(has(effects(*graph.body().nodes[0]), Trait::may_fail));
  EXPECT_FALSE(can_drop(*graph.body().nodes[0]));
  EXPECT_EQ(effects(*graph.body().nodes[1]), Trait::none);
  EXPECT_TRUE(can_drop(*graph.body().nodes[1]));
}

constexpr const char* nested_text = R"(graph @g(%b: bool, %x: f32[2], %n: i64) {
  %y = if %b : f32[2] {
    %r = relu %x : f32[2]
    yield %r
  } else {
    yield %x
  }
  %m, %w = while %n, %y : i64, f32[2] { (%i: i64, %acc: f32[2])
    yield %b
  } do { (%j: i64, %v: f32[2])
    %u = relu %v : f32[2]
    yield %j, %u
  }
  return %w
}
)";

TEST(Rewriter, copies_everything) {
  const Graph graph = parse(nested_text, ops::table());
  Rewriter rewriter(graph);
  rewriter.run([](const Node&) { return false; });
  const Graph copy = rewriter.finish();
  verify(copy);
  EXPECT_EQ(print(copy), print(graph));
}

TEST(Rewriter, replaces_nodes_in_nested_blocks) {
  const Graph graph = parse(nested_text, ops::table());
  Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    if (node.op->name != "relu") return false;
    rewriter.replace(node, {op::detach(rewriter.builder(), {rewriter[node.inputs[0]]})});
    return true;
  });
  const Graph result = rewriter.finish();
  verify(result);
  std::string expected = nested_text;
  for (size_t at; (at = expected.find("relu")) != std::string::npos;)
    expected.replace(at, 4, "detach");
  EXPECT_EQ(print(result), expected) << "names are kept";
}

TEST(Rewriter, drops_nodes_and_follows_types_that_change) {
  const Graph graph = parse(R"(graph @g(%x: f32[2]) {
  %y = detach %x : f32[2]
  %z = relu %y : f32[2]
  return %z
})",
                            ops::table());
  Rewriter rewriter(graph);
  Value* other = rewriter.builder().input(Type::tensor(DType::f64, {5}), "other");
  rewriter.run([&](const Node& node) {
    if (node.op != &op::detach) return false;
    rewriter.replace(node, {other});
    return true;
  });
  const Graph result = rewriter.finish();
  verify(result);
  EXPECT_EQ(result.results()[0]->type, Type::tensor(DType::f64, {5}));
}

TEST(Rewriter, says_which_value_is_missing) {
  const Graph graph = parse(R"(graph @g(%x: f32[2]) {
  %y = detach %x : f32[2]
  return %y
})",
                            ops::table());
  Rewriter rewriter(graph);
  EXPECT_THROW(rewriter.run([](const Node&) { return true; }), InternalError);
}

}  // namespace
}  // namespace janus::graph
