// Names of dimensions: which sizes share one, and what each is in the call at hand.
#include "frontend/core/dimension_table.h"

#include <gtest/gtest.h>

namespace janus::frontend {

using graph::Dim;

TEST(DimensionTable, EqualSizesShareAName) {
  DimensionTable table;
  const Dim batch = table.entry_dimension(32);
  EXPECT_EQ(batch, table.entry_dimension(32));
  EXPECT_NE(batch, table.entry_dimension(7));
  EXPECT_EQ(graph::to_string(batch), "B");
  EXPECT_EQ(graph::to_string(table.entry_dimension(7)), "T");
}

TEST(DimensionTable, KnowsWhichSizesHaveNames) {
  DimensionTable table;
  EXPECT_FALSE(table.has_entry_dimension(5));
  table.entry_dimension(5);
  EXPECT_TRUE(table.has_entry_dimension(5));
}

TEST(DimensionTable, ANameThatIsTakenIsMadeAnother) {
  DimensionTable table;
  EXPECT_EQ(table.new_symbol("B", 3), "B");
  EXPECT_EQ(table.new_symbol("B", 4), "B_");
  EXPECT_EQ(graph::to_string(table.entry_dimension(9)), "B__");
}

TEST(DimensionTable, EvaluatesFormulasOfTheEntry) {
  DimensionTable table;
  const Dim size = table.entry_dimension(6);
  EXPECT_EQ(table.evaluate(size * 2 + 1), 13);
  EXPECT_EQ(table.evaluate(Dim(4)), 4);
  EXPECT_EQ(table.evaluate(Dim::symbol("unknown")), std::nullopt);
}

TEST(DimensionTable, SizesOfTheRunAreKnownInTheirBlockAlone) {
  graph::Graph graph("f");
  DimensionTable table;
  EXPECT_FALSE(table.has_run_time_dimensions());
  const Dim length = table.new_dimension(graph.body());
  EXPECT_TRUE(table.has_run_time_dimensions());
  EXPECT_EQ(table.evaluate(length), std::nullopt);
  EXPECT_EQ(table.block_of(graph::to_string(length)), &graph.body());
  EXPECT_EQ(table.block_of("B"), nullptr);

  const graph::Type type = graph::Type::tensor(graph::DType::f32, {length, Dim(3)});
  EXPECT_TRUE(
      table.is_sized_in(type, [&](const graph::Block* block) { return block == &graph.body(); }));
  EXPECT_FALSE(table.is_sized_in(type, [](const graph::Block*) { return false; }));
}

}  // namespace janus::frontend
