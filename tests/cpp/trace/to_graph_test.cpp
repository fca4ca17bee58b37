// What graphs are generated of TraceGraphs: operators, inputs, results, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "ops/list.h"
#include "trace/to_graph.h"
#include "trace_maker.h"

namespace janus::trace {
namespace {

using testing::HasSubstr;
using testing::Not;
using Program = std::function<void(TraceMaker&)>;

class ToGraph : public testing::Test {
 protected:
  void merge(const Program& program) {
    TraceMaker maker(names_);
    program(maker);
    traces_.merge(maker.trace());
  }
  GeneratedGraph generate(OperatorEmitter* emitter = nullptr) {
    auto result = to_graph(traces_, emitter);
    if (auto* refusal = std::get_if<Refusal>(&result)) throw std::runtime_error(refusal->reason);
    graph::verify(std::get<GeneratedGraph>(result).graph);
    return std::get<GeneratedGraph>(std::move(result));
  }
  std::string text(OperatorEmitter* emitter = nullptr) {
    return graph::print(generate(emitter).graph, {.operator_names = true});
  }
  std::string refusal() {
    auto result = to_graph(traces_);
    return std::holds_alternative<Refusal>(result) ? std::get<Refusal>(result).reason : "none";
  }

  Names names_;
  TraceGraph traces_{names_};
  const graph::Type two_ = f32({2});
};

TEST_F(ToGraph, gives_missing_operands_their_defaults) {
  merge([this](TraceMaker& make) {
    const Operand x = make.feed(two_);
    make.look(make.call(1, "aten::add.Tensor", {x, x}, two_));
    make.look(make.call(2, "aten::add.Tensor", {x, x}, {two_}, {{"alpha", int64_t{3}}}));
  });
  EXPECT_THAT(text(), HasSubstr("%c1 = constant {value=1} : i64\n"
                                "  %add = add %feed0, %feed0, %c1"));
  EXPECT_THAT(text(), HasSubstr("%c3 = constant {value=3} : i64\n"
                                "  %add.1 = add %feed0, %feed0, %c3"));
}

TEST_F(ToGraph, takes_lists_of_operands) {
  merge([this](TraceMaker& make) {
    const Operand x = make.feed(two_);
    make.look(make.call(1, "aten::cat", {x, x}, f32({4})));
  });
  EXPECT_THAT(text(), HasSubstr("= cat %feed0, %feed0 : f32[4]"));
}

TEST_F(ToGraph, calls_other_operators_as_they_are) {
  merge([this](TraceMaker& make) {
    const Operand x = make.feed(two_);
    make.look(make.call(1, "my::op", {x, x}, {two_, two_}, {{"flag", true}}));
  });
  EXPECT_THAT(text(), HasSubstr("opaque %feed0, %feed0 {flag=true, operands=\"self,other\", "
                                "operator=\"my::op\"} : f32[2], f32[2]"));
}

TEST_F(ToGraph, calls_operators_with_unknown_arguments_as_they_are) {
  merge([this](TraceMaker& make) {
    make.look(make.call(1, "aten::neg", {make.feed(two_)}, {two_}, {{"other", int64_t{1}}}));
  });
  EXPECT_THAT(text(),
              HasSubstr("opaque %feed0 {operands=\"self\", operator=\"aten::neg\", other=1}"));
}

TEST_F(ToGraph, refuses_sizes_that_nothing_determines) {
  for (const int64_t size : {3, 5})
    merge([=, this](TraceMaker& make) {
      const Operand x = make.feed(two_);
      make.look(make.call(1, "my::nonzero", {x, x}, f32({size})));
    });
  EXPECT_EQ(refusal(),
            "the sizes of a result of my::nonzero vary, and nothing says how, at a.py:1");
}

/// Knows that the operator repeats its operand.
class Repeats final : public OperatorEmitter {
 public:
  std::optional<std::vector<graph::Value*>> emit(graph::Builder& builder, const Operator& op,
                                                 const graph::Shape& /*sizes*/,
                                                 std::span<graph::Value* const> operands,
                                                 std::span<const Pattern> results) override {
    if (op.name != "my::twice") return std::nullopt;
    return std::vector<graph::Value*>{
        builder.append(janus::op::cat, {operands[0], operands[0]}, {{"dim", int64_t{0}}})
            ->output()};
  }
};

TEST_F(ToGraph, asks_the_caller_for_operators) {
  for (const int64_t size : {3, 5})
    merge([=](TraceMaker& make) {
      const Operand x = make.feed(f32({size}));
      make.look(make.call(1, "my::twice", {x, x}, f32({2 * size})));
    });
  EXPECT_THAT(text(), HasSubstr("opaque %feed0, %feed0 {operands=\"self,other\", "
                                "operator=\"my::twice\"} : f32[s0*2]"));
  Repeats emitter;
  EXPECT_THAT(text(&emitter), HasSubstr("cat %feed0, %feed0 : f32[s0*2]"));
}

TEST_F(ToGraph, asks_for_symbols_that_no_certain_input_shows) {
  for (const int64_t size : {0, 3, 5})
    merge([=, this](TraceMaker& make) {
      make.call(1, "aten::neg", {make.feed(two_)}, two_);
      if (size != 0) make.look(make.call(2, "aten::neg", {make.feed(f32({size}))}, f32({size})));
    });
  const GeneratedGraph generated = generate();
  EXPECT_THAT(
      graph::print(generated.graph),
      HasSubstr("(%decisions: list<i64>, %feed0: f32[2], %feed1: list<f32[s0]>, %s0: i64)"));
  EXPECT_EQ(generated.inputs.back().kind, GraphInput::Kind::symbol);
}

TEST_F(ToGraph, gives_a_feed_that_a_loop_replaces_at_the_beginning) {
  for (const int trips : {2, 7})
    merge([=, this](TraceMaker& make) {
      Operand x = make.feed(two_);
      for (int i = 0; i < trips; ++i) x = make.call(1, "aten::mul.Tensor", {x, x}, two_);
      make.look(x);
    });
  // x * x: the second operand is the feed of the first one, or what the loop carries.
  EXPECT_THAT(text(), HasSubstr("%feed0: f32[2]"));
  EXPECT_THAT(text(), Not(HasSubstr("if ")));
}

TEST_F(ToGraph, notices_when_an_early_feed_is_used) {
  // The last operand is the feed, what the loop made of it, or the result of a branch.
  for (const std::vector<bool>& trips :
       {std::vector<bool>{false, true, false}, {true, true, false, false, true}})
    merge([=, this](TraceMaker& make) {
      Operand x = make.feed(two_);
      for (const bool branches : trips) {
        const Operand n = make.call(1, "aten::tanh", {x}, two_);
        const Operand y = branches ? make.call(2, "aten::relu", {x}, two_) : x;
        make.look(make.call(3, "aten::add.Tensor", {y, n}, two_));
        x = make.call(4, "aten::neg", {n}, two_);
      }
    });
  EXPECT_THAT(traces_.print(), HasSubstr("aten::add.Tensor (feed of 1 operand 0 | 4 | 3, 1)"));
  EXPECT_THAT(text(), HasSubstr("%cfalse = constant {value=false} : bool"));
}

TEST_F(ToGraph, says_where_nodes_come_from) {
  merge(
      [this](TraceMaker& make) { make.look(make.call(12, "aten::neg", {make.feed(two_)}, two_)); });
  EXPECT_THAT(graph::print(generate().graph, {.spans = true}), HasSubstr("// a.py:12"));
}

TEST_F(ToGraph, unrolls_short_loops_of_fixed_length) {
  merge([this](TraceMaker& make) {
    Operand x = make.feed(two_);
    for (int i = 0; i < 3; ++i) x = make.call(1, "aten::neg", {x}, two_);
    make.look(x);
  });
  EXPECT_THAT(text(), Not(HasSubstr("while")));
  EXPECT_THAT(text(), HasSubstr("%neg.2 = neg %neg.1"));
}

TEST_F(ToGraph, reads_decisions_of_nested_blocks_in_order) {
  for (const int way : {0, 1, 2, 3})
    merge([=, this](TraceMaker& make) {
      Operand x = make.feed(two_);
      if (way > 0) x = make.call(1, "aten::neg", {x}, two_);
      if (way > 1) x = make.call(static_cast<Location>(way), "aten::tanh", {x}, two_);
      x = make.call(5, "aten::relu", {x}, two_);
      make.look(make.call(way % 2 == 0 ? 6 : 7, "aten::neg", {x}, two_));
    });
  // Ways through the first branch read one or two decisions, so the position is a value behind it.
  EXPECT_THAT(text(), HasSubstr("if %scalar_eq : i64"));
}

}  // namespace
}  // namespace janus::trace
