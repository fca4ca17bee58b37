#include "passes/structure/captures.h"

#include <gtest/gtest.h>

#include "../support.h"

namespace janus::passes {
namespace {

std::vector<std::string> names(const std::vector<graph::Value*>& values) {
  std::vector<std::string> result;
  for (const graph::Value* value : values) result.push_back(value->name);
  return result;
}

TEST(Captures, OfBlocksAreWhatTheyUseFromAround) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %y: f32[2], %z: f32[2], %c: bool) {
  %a = if %c : f32[2] {
    %p = mul %x, %y : f32[2]
    %q = if %c : f32[2] {
      %r = mul %p, %z : f32[2]
      yield %r
    } else {
      yield %x
    }
    yield %q
  } else {
    yield %y
  }
  return %a
})");
  const graph::Node& branch = *graph.body().nodes.front();
  EXPECT_EQ(names(operands(branch)), (std::vector<std::string>{"c", "x", "y", "z"}));
  EXPECT_EQ(names(outer_values(branch)), (std::vector<std::string>{"x", "y", "c", "z"}));
}

TEST(Captures, OfACallAreWhatItsFunctionsUse) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %w: f32[2]) {
  function {name="inner"} { (%a: f32[2])
    %b = mul %a, %w : f32[2]
    yield %b
  }
  function {name="outer"} { (%d: f32[2])
    %e = call %d {callee="inner"} : f32[2]
    yield %e
  }
  %y = call %x {callee="outer"} : f32[2]
  return %y
})");
  const graph::Node& call = *graph.body().nodes.back();
  EXPECT_EQ(names(operands(call)), (std::vector<std::string>{"x", "w"}));
}

}  // namespace
}  // namespace janus::passes
