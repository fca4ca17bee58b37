// What traces add to a TraceGraph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/trace_graph.h"
#include "trace_maker.h"

namespace janus::trace {
namespace {

using testing::HasSubstr;

class Merge : public testing::Test {
 protected:
  using Program = std::function<void(TraceMaker&)>;

  Additions merge(const Program& program) {
    TraceMaker maker(names_);
    program(maker);
    return traces_.merge(maker.trace());
  }
  std::string text() const { return traces_.print(); }
  size_t node_count() const { return traces_.nodes().nodes.size(); }

  Names names_;
  TraceGraph traces_{names_};
  const graph::Type two_ = f32({2});
};

TEST_F(Merge, adds_a_trace_once) {
  const auto program = [this](TraceMaker& make) {
    make.look(make.call(1, "aten::neg", {make.feed(two_)}, two_));
  };
  const Additions first = merge(program);
  EXPECT_EQ(first.why, "aten::neg at a.py:1 is new at the beginning");
  EXPECT_EQ(first.nodes, 1u);
  EXPECT_EQ(first.edges, 2u);
  EXPECT_EQ(first.fetches, 1u);
  EXPECT_FALSE(merge(program).any());
}

TEST_F(Merge, covers_iterations_without_operators) {
  EXPECT_TRUE(merge([](TraceMaker&) {}).any());
  EXPECT_FALSE(merge([](TraceMaker&) {}).any());
  EXPECT_EQ(text(), "entry => end\n");
}

TEST_F(Merge, tells_operands_apart) {
  const auto program = [this](bool first) {
    return [=, this](TraceMaker& make) {
      const Operand a = make.call(1, "aten::neg", {make.feed(two_)}, two_);
      const Operand b = make.call(2, "aten::tanh", {a}, two_);
      make.call(3, "aten::relu", {first ? a : b}, two_);
    };
  };
  merge(program(true));
  EXPECT_THAT(
      merge(program(false)).why,
      HasSubstr("operand 0 is result 0 of aten::tanh at a.py:2, was result 0 of aten::neg"));
  EXPECT_THAT(text(), HasSubstr("2: aten::relu (0)"));
  EXPECT_THAT(text(), HasSubstr("3: aten::relu (1)"));
}

TEST_F(Merge, takes_in_sources_where_ways_join) {
  const auto program = [this](Location line) {
    return [=, this](TraceMaker& make) {
      const Operand x = make.call(line, "aten::neg", {make.feed(two_)}, two_);
      make.call(3, "aten::relu", {x}, two_);
    };
  };
  merge(program(1));
  const Additions second = merge(program(2));
  EXPECT_EQ(second.nodes, 1u);
  EXPECT_EQ(second.sources, 2u);  // the feed of its own, and one more for the join
  EXPECT_THAT(text(), HasSubstr("1: aten::relu (0 | 2)"));
}

TEST_F(Merge, tells_attributes_and_types_apart) {
  const auto program = [](int64_t alpha, graph::Type type) {
    return [=](TraceMaker& make) {
      const Operand x = make.feed(type);
      make.call(1, "aten::add.Tensor", {x, x}, {type}, {{"alpha", alpha}});
    };
  };
  merge(program(1, f32({4})));
  EXPECT_THAT(merge(program(2, f32({4}))).why, HasSubstr("{alpha=2} at a.py:1 is new"));
  EXPECT_THAT(merge(program(1, f32({1}))).why,
              HasSubstr("operand 0 is a new feed of type f32[1], was a new feed of type f32[4]"));
  EXPECT_EQ(node_count(), 3u);
}

TEST_F(Merge, makes_symbols_of_sizes_that_vary) {
  const auto program = [](int64_t rows, int64_t columns) {
    return [=](TraceMaker& make) {
      const Operand x = make.feed(f32({rows, columns}));
      const Operand y = make.feed(f32({columns, rows}));
      make.call(1, "aten::mm", {x, y}, f32({rows, rows}));
    };
  };
  merge(program(4, 7));
  EXPECT_THAT(text(), HasSubstr("feed f32[4,7]"));
  EXPECT_THAT(merge(program(5, 7)).why, HasSubstr("operand 0 is a new feed of type f32[5,7]"));
  EXPECT_THAT(text(), HasSubstr("(feed f32[s0,7], feed f32[7,s0]) -> f32[s0,s0]"));
  EXPECT_FALSE(merge(program(9, 7)).any());
  EXPECT_TRUE(merge(program(9, 6)).any());
  EXPECT_THAT(text(), HasSubstr("(feed f32[s1,s0], feed f32[s0,s1]) -> f32[s1,s1]"));
}

TEST_F(Merge, gives_sizes_that_are_not_always_equal_symbols_of_their_own) {
  const auto program = [](int64_t a, int64_t b) {
    return [=](TraceMaker& make) {
      make.call(1, "aten::neg", {make.feed(f32({a}))}, f32({a}));
      make.call(2, "aten::neg", {make.feed(f32({b}))}, f32({b}));
    };
  };
  merge(program(4, 4));
  merge(program(5, 5));
  EXPECT_THAT(merge(program(6, 7)).why, HasSubstr("operand 0 is a new feed of type f32[7], was"));
  EXPECT_THAT(text(), HasSubstr("1: aten::neg (feed f32[s1]) -> f32[s1]"));
}

TEST_F(Merge, unites_what_Python_looks_at) {
  const auto program = [this](bool first) {
    return [=, this](TraceMaker& make) {
      const Operand a = make.call(1, "aten::neg", {make.feed(two_)}, two_);
      const Operand b = make.call(2, "aten::neg", {a}, two_);
      make.look(first ? a : b);
    };
  };
  merge(program(true));
  const Additions second = merge(program(false));
  EXPECT_EQ(second.why, "Python looks at result 0 of aten::neg at a.py:2 for the first time");
  EXPECT_EQ(second.fetches, 1u);
  EXPECT_EQ(second.nodes, 0u);
}

TEST_F(Merge, makes_loops_of_locations_that_come_again) {
  const auto program = [this](int trips) {
    return [=, this](TraceMaker& make) {
      Operand x = make.feed(two_);
      for (int i = 0; i < trips; ++i) x = make.call(1, "aten::neg", {x}, two_);
      make.call(2, "aten::relu", {x}, two_);
    };
  };
  merge(program(2));
  EXPECT_THAT(text(), HasSubstr("0: loop of 2 trips at a.py:1"));
  EXPECT_THAT(merge(program(3)).why, HasSubstr("the loop had 2 trips each time"));
  EXPECT_THAT(text(), HasSubstr("0: loop at a.py:1"));
  EXPECT_FALSE(merge(program(7)).any());
  EXPECT_FALSE(merge(program(1)).any());
  EXPECT_TRUE(merge(program(0)).any());
  EXPECT_THAT(text(), HasSubstr("relu (1 | feed f32[2])"));
}

TEST_F(Merge, sees_by_a_later_trace_that_a_single_trip_is_one_of_a_loop) {
  const auto program = [this](int trips) {
    return [=, this](TraceMaker& make) {
      Operand x = make.feed(two_);
      for (int i = 0; i < trips; ++i) x = make.call(1, "aten::neg", {x}, two_);
    };
  };
  merge(program(1));
  EXPECT_EQ(text(), "entry => 0\n0: aten::neg (feed f32[2]) -> f32[2] at a.py:1 => end\n");
  merge(program(9));
  EXPECT_THAT(text(), HasSubstr("0: loop at a.py:1"));
  EXPECT_FALSE(merge(program(1)).any());
}

TEST_F(Merge, unrolls_loops_whose_trips_use_cells_of_their_own) {
  merge([this](TraceMaker& make) {
    Operand x = make.feed(two_);
    for (CellId layer = 0; layer < 3; ++layer)
      x = make.call(1, "aten::mul.Tensor", {x, make.cell(layer, two_)}, two_);
  });
  EXPECT_EQ(node_count(), 3u);
  EXPECT_EQ(text().find("loop"), std::string::npos);
}

TEST_F(Merge, unrolls_loops_that_use_the_trip_before_the_last) {
  const auto program = [this](int trips) {
    return [=, this](TraceMaker& make) {
      Operand a = make.feed(two_), b = make.feed(two_);
      for (int i = 0; i < trips; ++i)
        a = std::exchange(b, make.call(1, "aten::add.Tensor", {a, b}, two_));
    };
  };
  merge(program(4));
  EXPECT_EQ(node_count(), 4u);
  EXPECT_TRUE(merge(program(6)).any());
  EXPECT_FALSE(merge(program(5)).nodes > 0);
}

TEST_F(Merge, unrolls_loops_whose_sizes_grow) {
  merge([](TraceMaker& make) {
    Operand x = make.call(1, "aten::neg", {make.feed(f32({2}))}, f32({2}));
    for (int64_t i = 2; i < 5; ++i)
      x = make.call(2, "aten::cat", {x, make.cell(0, f32({1}))}, f32({i + 1}));
  });
  EXPECT_EQ(node_count(), 4u);
}

TEST_F(Merge, finds_the_outer_loop_first) {
  const auto program = [this](std::vector<int> inner) {
    return [=, this](TraceMaker& make) {
      Operand x = make.feed(two_);
      for (const int count : inner) {
        x = make.call(1, "aten::neg", {x}, two_);
        for (int i = 0; i < count; ++i) x = make.call(2, "aten::tanh", {x}, two_);
        x = make.call(3, "aten::relu", {x}, two_);
      }
    };
  };
  merge(program({3}));
  merge(program({1, 2, 4}));
  EXPECT_THAT(text(), HasSubstr("0: loop at a.py:1 => end\n"
                                "  entry => 1\n"
                                "  1: aten::neg"));
  EXPECT_THAT(text(), HasSubstr("  2: loop at a.py:2 => 4\n"));
  EXPECT_FALSE(merge(program({5, 5})).any());
}

TEST_F(Merge, refuses_traces_that_name_what_is_not_there) {
  Trace trace;
  trace.events.push_back({.operands = {Operand::of_result(0)}});
  EXPECT_THROW(traces_.merge(trace), InternalError);
  trace.events[0].operands = {Operand::feed(1, two_)};
  EXPECT_THROW(traces_.merge(trace), InternalError);
}

}  // namespace
}  // namespace janus::trace
