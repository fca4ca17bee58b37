#include "base/call_tree.h"

#include <gtest/gtest.h>

namespace janus {
namespace {

using Keys = std::vector<CallTree::Key>;

/// Functions are told apart by addresses.
const char kFunctions[5] = {};
const CallTree::Key main_of = &kFunctions[0], fit = &kFunctions[1], step = &kFunctions[2],
                    model = &kFunctions[3], log_of = &kFunctions[4];

CallTree::Choice take_all(CallTree::Key /*key*/) { return CallTree::Choice::take; }

/// A step of 10 ms, of which its model takes 8.
void run_step(CallTree& tree, double start, bool has_tensors = true) {
  tree.enter(step, start);
  tree.enter(model, start + 1);
  if (has_tensors) tree.mark();
  tree.leave(start + 9);
  tree.leave(start + 10);
}

TEST(CallTree, FindsTheOutermostFunctionOfALoop) {
  CallTree tree;
  tree.begin_window({main_of, fit}, 0);
  for (int i = 0; i < 3; ++i) run_step(tree, 10.0 * i);
  tree.end_window(30);
  EXPECT_EQ(tree.repeated(3, 0.05, take_all), Keys{step});
  EXPECT_EQ(tree.repeated(4, 0.05, take_all), Keys{});
  EXPECT_EQ(tree.watched(), 30);
}

TEST(CallTree, CountsOverWindowsAndWhatBeganBeforeThem) {
  CallTree tree;
  for (int i = 0; i < 3; ++i) {
    tree.begin_window({main_of, fit, step, model}, 100.0 * i);
    tree.mark();
    tree.leave(100.0 * i + 5);
    tree.leave(100.0 * i + 6);
    tree.end_window(100.0 * i + 8);
  }
  EXPECT_EQ(tree.repeated(3, 0.05, take_all), Keys{step});
}

TEST(CallTree, AsksCalleesWhereAFunctionIsNotTaken) {
  CallTree tree;
  tree.begin_window({main_of, fit}, 0);
  for (int i = 0; i < 3; ++i) run_step(tree, 10.0 * i);
  tree.end_window(30);
  const auto below_step = [](CallTree::Key key) {
    return key == step ? CallTree::Choice::below : CallTree::Choice::take;
  };
  EXPECT_EQ(tree.repeated(3, 0.05, below_step), Keys{model});
  const auto skip = [](CallTree::Key) { return CallTree::Choice::skip; };
  EXPECT_EQ(tree.repeated(3, 0.05, skip), Keys{});
}

TEST(CallTree, LeavesOutShortAndUnmarkedFunctions) {
  CallTree tree;
  tree.begin_window({main_of, fit}, 0);
  for (int i = 0; i < 5; ++i) {
    run_step(tree, 20.0 * i);
    tree.enter(log_of, 20.0 * i + 10);
    tree.mark();
    tree.leave(20.0 * i + 10.1);
  }
  tree.end_window(100);
  EXPECT_EQ(tree.repeated(3, 0.05, take_all), Keys{step});
  CallTree other;
  other.begin_window({main_of, fit}, 0);
  for (int i = 0; i < 5; ++i) run_step(other, 10.0 * i, /*has_tensors=*/false);
  other.end_window(50);
  EXPECT_EQ(other.repeated(3, 0.05, take_all), Keys{});
}

TEST(CallTree, ReturnsOfUnknownCallsChangeNothing) {
  CallTree tree;
  tree.begin_window({}, 0);
  tree.leave(1);
  run_step(tree, 1);
  tree.end_window(11);
  tree.clear();
  EXPECT_EQ(tree.watched(), 0);
  EXPECT_EQ(tree.repeated(1, 0, take_all), Keys{});
}

}  // namespace
}  // namespace janus
