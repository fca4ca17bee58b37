// Attributes of events that are sizes: constant, what follows from dimensions, or symbols.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/size_expression.h"
#include "trace/trace_graph.h"
#include "trace_maker.h"

namespace janus::trace {
namespace {

std::string expression(const SizeColumn& sizes, const std::vector<SizeColumn>& symbols) {
  const auto found = expression_for(sizes, symbols);
  return found ? graph::to_string(*found) : "none";
}

TEST(SizeExpression, finds_products_sums_and_quotients) {
  const std::vector<SizeColumn> symbols = {{3, 5, 8}, {4, 9, 7}};
  EXPECT_EQ(expression({6, 10, 16}, symbols), "s0*2");
  EXPECT_EQ(expression({24, 90, 112}, symbols), "s0*s1*2");
  EXPECT_EQ(expression({9, 25, 64}, symbols), "s0*s0");
  EXPECT_EQ(expression({2, 4, 7}, symbols), "s0-1");
  EXPECT_EQ(expression({2, 3, 4}, symbols), "(s0+1)//2");
  EXPECT_EQ(expression({2, 30, 4}, symbols), "none");
}

TEST(SizeExpression, asks_for_symbols_wherever_the_size_was_seen) {
  EXPECT_EQ(expression({6, kAbsent, 16}, {{3, kAbsent, 8}}), "s0*2");
  EXPECT_EQ(expression({6, 10, 16}, {{3, kAbsent, 8}}), "none");
}

class EventSizes : public testing::Test {
 protected:
  Trace trace(int64_t feed, std::vector<int64_t> sizes) {
    TraceMaker make(names_);
    make.call(1, "my::op", {make.feed(f32({feed})), make.feed(f32({2}))}, f32({2}));
    Trace made = make.trace();
    made.events[0].sizes = std::move(sizes);
    return made;
  }
  const Node& node() const { return traces_.nodes().nodes[0]; }
  std::string sizes() const { return graph::to_string(node().sizes.symbolic()); }
  bool is_followed(const Trace& trace) {
    Cursor cursor = traces_.cursor();
    return cursor.follow(trace.events[0]) && cursor.finish();
  }

  Names names_;
  TraceGraph traces_{names_};
};

TEST_F(EventSizes, follow_from_dimensions) {
  traces_.merge_all({trace(3, {6, 7, 30}), trace(5, {10, 7, 4}), trace(9, {18, 7, 11})});
  EXPECT_EQ(sizes(), "i64[s0*2,7,s1]");
  EXPECT_TRUE(is_followed(trace(20, {40, 7, 50})));
  EXPECT_FALSE(is_followed(trace(20, {41, 7, 50})));
  EXPECT_FALSE(is_followed(trace(20, {40, 8, 50})));
}

TEST_F(EventSizes, are_other_operators_where_they_are_0_or_1) {
  traces_.merge_all({trace(3, {6}), trace(3, {1}), trace(3, {0})});
  EXPECT_EQ(traces_.nodes().nodes.size(), 3u);
}

TEST_F(EventSizes, are_corrected_by_another_trace) {
  traces_.merge_all({trace(3, {6}), trace(5, {10})});
  EXPECT_EQ(sizes(), "i64[s0*2]");
  EXPECT_EQ(traces_.merge(trace(4, {9})).why, "a size follows from others in another way");
  EXPECT_EQ(sizes(), "i64[s1]");
}

TEST(TraceGraphWithoutLoops, unrolls_what_comes_again) {
  Names names;
  TraceGraph traces(names, {.folds = false});
  const auto repeated = [&](int trips) {
    TraceMaker make(names);
    Operand x = make.feed(f32({2}));
    for (int i = 0; i < trips; ++i) x = make.call(1, "aten::neg", {x}, f32({2}));
    make.call(2, "aten::tanh", {x}, f32({2}));
    return make.trace();
  };
  traces.merge_all({repeated(2), repeated(4)});
  EXPECT_EQ(traces.nodes().nodes.size(), 5u);
  Cursor cursor = traces.cursor();
  for (const Event& event : repeated(2).events) EXPECT_TRUE(cursor.follow(event));
  EXPECT_TRUE(cursor.finish());
}

}  // namespace
}  // namespace janus::trace
