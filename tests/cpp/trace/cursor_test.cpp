// What a cursor says of an iteration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/feeding.h"
#include "trace_maker.h"

namespace janus::trace {
namespace {

using testing::ElementsAre;
using Kind = Decision::Kind;

const graph::Type two = f32({2});

/// x = neg(feed); then a loop of relu, in each trip of which tanh may follow; then add.
Trace iteration(Names& names, const std::vector<bool>& trips) {
  TraceMaker make(names);
  Operand x = make.call(1, "aten::neg", {make.feed(two)}, two);
  for (const bool also : trips) {
    x = make.call(2, "aten::relu", {x}, two);
    if (also) x = make.call(3, "aten::tanh", {x}, two);
  }
  make.look(make.call(4, "aten::add.Tensor", {x, x}, two));
  return make.trace();
}

class CursorTest : public testing::Test {
 protected:
  CursorTest() {
    for (const auto& trips : {std::vector<bool>{false, true}, {true, false, true}, {}, {false}})
      traces_.merge(iteration(names_, trips));
  }

  Names names_;
  TraceGraph traces_{names_};
};

TEST_F(CursorTest, tells_nodes_and_decisions) {
  Cursor cursor = traces_.cursor();
  const Trace trace = iteration(names_, {true, false});
  const auto& nodes = traces_.nodes().nodes;
  std::vector<std::vector<Decision>> decisions;
  for (const Event& event : trace.events) {
    ASSERT_TRUE(cursor.follow(event)) << cursor.mismatch();
    EXPECT_EQ(nodes[cursor.node()].key, key_of(event));
    decisions.emplace_back(cursor.decisions().begin(), cursor.decisions().end());
  }
  ASSERT_TRUE(cursor.finish());
  // neg: 0, loop: 1, relu: 2, add: 4 or so, tanh: the other.
  const NodeId loop = nodes[0].children[0];
  EXPECT_THAT(decisions[0], ElementsAre());
  EXPECT_THAT(decisions[1], ElementsAre(Decision{Kind::select, 0, 0}));
  EXPECT_THAT(decisions[2], ElementsAre(Decision{Kind::select, 2, 1}));
  EXPECT_THAT(decisions[3], ElementsAre(Decision{Kind::again, loop, 1}));
  EXPECT_THAT(decisions[4],
              ElementsAre(Decision{Kind::select, 2, 0}, Decision{Kind::leave, loop, 0}));
}

TEST_F(CursorTest, gathers_what_the_graph_is_given) {
  Cursor cursor = traces_.cursor();
  Feeding feeding(traces_.nodes());
  const Trace trace = iteration(names_, {true, false});
  for (const Event& event : trace.events) {
    ASSERT_TRUE(cursor.follow(event));
    feeding.add(cursor, event);
  }
  ASSERT_TRUE(cursor.finish());
  feeding.finish(cursor);
  EXPECT_THAT(feeding.decisions(), ElementsAre(0, 1, 1, 0, 0));
  EXPECT_THAT(feeding.given(0), ElementsAre(0u));
}

TEST_F(CursorTest, explains_new_operators) {
  Cursor cursor = traces_.cursor();
  const Trace trace = iteration(names_, {});
  ASSERT_TRUE(cursor.follow(trace.events[0]));
  TraceMaker make(names_);
  make.call(9, "aten::sum", {make.feed(two)}, f32({}));
  EXPECT_FALSE(cursor.follow(make.trace().events[0]));
  EXPECT_EQ(cursor.mismatch(), "aten::sum at a.py:9 is new after aten::neg at a.py:1");
}

TEST_F(CursorTest, explains_other_operands_and_results) {
  Cursor cursor = traces_.cursor();
  Trace trace = iteration(names_, {});
  ASSERT_TRUE(cursor.follow(trace.events[0]));
  Event other = trace.events[1];
  other.operands[1] = Operand::of_cell(0, two);
  names_.cells[0] = "model.weight";
  EXPECT_FALSE(cursor.follow(other));
  EXPECT_EQ(cursor.mismatch(),
            "aten::add.Tensor at a.py:4 after aten::neg at a.py:1: operand 1 is cell model.weight "
            "of type f32[2], was result 0 of aten::tanh at a.py:3 or result 0 of aten::neg at "
            "a.py:1 or result 0 of aten::relu at a.py:2");
  cursor.begin();
  trace.events[0].results[0] = f32({3});
  EXPECT_FALSE(cursor.follow(trace.events[0]));
  EXPECT_EQ(cursor.mismatch(),
            "aten::neg at a.py:1 at the beginning: result 0 is f32[3], was f32[2]");
}

TEST_F(CursorTest, explains_iterations_that_end_early) {
  Cursor cursor = traces_.cursor();
  const Trace trace = iteration(names_, {});
  ASSERT_TRUE(cursor.follow(trace.events[0]));
  EXPECT_FALSE(cursor.finish());
  EXPECT_EQ(cursor.mismatch(), "the iteration ends after aten::neg at a.py:1");
}

TEST_F(CursorTest, notices_new_looks) {
  Cursor cursor = traces_.cursor();
  const Trace trace = iteration(names_, {});
  for (const Event& event : trace.events) ASSERT_TRUE(cursor.follow(event));
  EXPECT_TRUE(cursor.fetch(1, 0));
  EXPECT_FALSE(cursor.fetch(0, 0));
  EXPECT_EQ(cursor.mismatch(),
            "Python looks at result 0 of aten::neg at a.py:1 for the first time");
}

TEST_F(CursorTest, refuses_values_that_a_later_one_has_replaced) {
  // relu of what the trip before the last gave.
  Cursor cursor = traces_.cursor();
  const Trace trace = iteration(names_, {false, false, false});
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(cursor.follow(trace.events[i]));
  Event stale = trace.events[3];
  stale.operands[0].index = 1;
  EXPECT_FALSE(cursor.follow(stale));
  EXPECT_THAT(cursor.mismatch(), testing::HasSubstr("operand 0 is a value of an earlier trip"));
}

TEST(CursorSizes, checks_that_sizes_are_what_symbols_are) {
  Names names;
  TraceGraph traces(names);
  const auto sum = [&](int64_t a, int64_t b) {
    TraceMaker make(names);
    const Operand x = make.call(1, "aten::neg", {make.feed(f32({a}))}, f32({a}));
    make.call(2, "aten::add.Tensor", {x, make.feed(f32({b}))}, f32({b}));
    return make.trace();
  };
  traces.merge(sum(2, 2));
  traces.merge(sum(3, 3));
  Cursor cursor = traces.cursor();
  const Trace wrong = sum(4, 5);
  EXPECT_TRUE(cursor.follow(wrong.events[0]));
  EXPECT_EQ(cursor.symbols()[0], 4);
  EXPECT_FALSE(cursor.follow(wrong.events[1]));
  EXPECT_THAT(cursor.mismatch(), testing::HasSubstr("operand 1 is a new feed of type f32[5], was a "
                                                    "new feed of type f32[s0]"));
  cursor.begin();
  for (const Event& event : sum(7, 7).events) EXPECT_TRUE(cursor.follow(event));
}

}  // namespace
}  // namespace janus::trace
