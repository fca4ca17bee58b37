// How levels become structured programs.
#include "trace/structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/check.h"
#include "base/policy.h"

namespace janus::trace {
namespace {

/// One level with these edges; the entry leads to node 0.
Nodes level_of(const std::vector<std::vector<NodeId>>& children) {
  Nodes nodes;
  for (NodeId id = 0; id < children.size(); ++id) {
    nodes.nodes.push_back({.children = children[id]});
    nodes.levels[0].nodes.push_back(id);
  }
  nodes.levels[0].first = {0};
  return nodes;
}

std::string text(const Statements& statements) {
  std::string result;
  for (const Statement& statement : statements) {
    result += result.empty() ? "" : " ";
    const std::string node = statement.node == kEnd ? "end" : cat(statement.node);
    switch (statement.kind) {
      case Statement::Kind::event:
        result += node;
        break;
      case Statement::Kind::jump:
        result += cat("to ", node);
        break;
      case Statement::Kind::landing:
        result += cat("at ", node, " {", text(statement.blocks[0]), "}");
        break;
      case Statement::Kind::select:
      case Statement::Kind::loop: {
        result += statement.kind == Statement::Kind::loop ? "loop {" : "select {";
        const char* separator = "";
        for (const Statements& block : statement.blocks)
          result += cat(std::exchange(separator, " | "), text(block));
        result += "}";
        break;
      }
    }
  }
  return result;
}

std::string structure_of(const std::vector<std::vector<NodeId>>& children) {
  return text(structured(level_of(children)).value());
}

TEST(Structure, keeps_chains) { EXPECT_EQ(structure_of({{1}, {2}, {kEnd}}), "0 1 2"); }

TEST(Structure, nests_branches_that_join) {
  EXPECT_EQ(structure_of({{1, 2}, {3}, {3}, {4, kEnd}, {kEnd}}),
            "0 select {1 | 2} 3 select {4 | }");
  EXPECT_EQ(structure_of({{1, 5}, {2, 3}, {4}, {4}, {6}, {6}, {kEnd}}),
            "0 select {1 select {2 | 3} 4 | 5} 6");
}

TEST(Structure, jumps_over_what_is_not_on_all_paths) {
  // 1 leads to 3 past 2, and 2 joins 0 with 1.
  EXPECT_EQ(structure_of({{1, 2}, {2, 3}, {3}, {kEnd}}),
            "0 select {1 select {to 2 | to 3} | to 2} at 2 {2 to 3} 3 to end");
}

TEST(Structure, copies_nothing_where_branches_cross) {
  EXPECT_EQ(structure_of({{1, 2}, {3, 4}, {3, 4}, {kEnd}, {kEnd}}),
            "0 select {1 select {to 3 | to 4} | 2 select {to 3 | to 4}} at 3 {3 to end} "
            "at 4 {4 to end}");
}

TEST(Structure, keeps_the_body_of_a_loop_apart) {
  Nodes nodes = level_of({{1}, {kEnd}});
  nodes.nodes[0].body = 1;
  nodes.nodes.push_back({.level = 1, .children = {kEnd}});
  nodes.levels.push_back({.loop = 0, .first = {2}, .nodes = {2}});
  EXPECT_EQ(text(structured(nodes).value()), "loop {2} 1");
}

TEST(Structure, nests_no_deeper_than_passes_can_go) {
  const auto exits = [](NodeId count) {
    std::vector<std::vector<NodeId>> children;
    for (NodeId i = 0; i < count; ++i) children.push_back({i + 1, kEnd});
    children.push_back({kEnd});
    return children;
  };
  EXPECT_TRUE(structured(level_of(exits(policy::kDeepestBranches - 10))));
  EXPECT_FALSE(structured(level_of(exits(policy::kDeepestBranches + 10))));
}

}  // namespace
}  // namespace janus::trace
