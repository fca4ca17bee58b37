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
  EXPECT_EQ(tree.repeated({.calls = 3, .share = 0.05, .within = 50}, take_all), Keys{step});
  EXPECT_EQ(tree.repeated({.calls = 4, .share = 0.05, .within = 50}, take_all), Keys{});
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
  EXPECT_EQ(tree.repeated({.calls = 3, .share = 0.05, .within = 50}, take_all), Keys{step});
}

TEST(CallTree, AsksCalleesWhereAFunctionIsNotTaken) {
  CallTree tree;
  tree.begin_window({main_of, fit}, 0);
  for (int i = 0; i < 3; ++i) run_step(tree, 10.0 * i);
  tree.end_window(30);
  const auto below_step = [](CallTree::Key key) {
    return key == step ? CallTree::Choice::below : CallTree::Choice::take;
  };
  EXPECT_EQ(tree.repeated({.calls = 3, .share = 0.05, .within = 50}, below_step), Keys{model});
  const auto skip = [](CallTree::Key) { return CallTree::Choice::skip; };
  EXPECT_EQ(tree.repeated({.calls = 3, .share = 0.05, .within = 50}, skip), Keys{});
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
  EXPECT_EQ(tree.repeated({.calls = 3, .share = 0.05, .within = 50}, take_all), Keys{step});
  CallTree other;
  other.begin_window({main_of, fit}, 0);
  for (int i = 0; i < 5; ++i) run_step(other, 10.0 * i, /*has_tensors=*/false);
  other.end_window(50);
  EXPECT_EQ(other.repeated({.calls = 3, .share = 0.05, .within = 50}, take_all), Keys{});
}

TEST(CallTree, LooksWithinAStepOnlyForWhatItCallsVeryOften) {
  CallTree tree;
  tree.begin_window({main_of}, 0);
  tree.enter(fit, 0);  // which ends once: it may be a step, whose layers are no entry points
  for (int i = 0; i < 49; ++i) run_step(tree, 10.0 * i);
  tree.leave(490);
  tree.end_window(490);
  const CallTree::Threshold least = {.calls = 3, .share = 0.05, .within = 50};
  EXPECT_EQ(tree.repeated(least, take_all), Keys{});
  tree.begin_window({main_of, fit}, 500);
  run_step(tree, 500);
  tree.end_window(510);
  EXPECT_EQ(tree.repeated(least, take_all), Keys{step});
}

TEST(CallTree, LeavesOutWhatACoveredCallReaches) {
  CallTree tree;
  tree.begin_window({main_of, fit}, 0);
  const auto run_covered = [&](double start, bool is_covered) {
    tree.enter(step, start, is_covered);
    tree.enter(model, start + 1);
    tree.mark();
    tree.leave(start + 9);
    tree.leave(start + 10);
  };
  for (int i = 0; i < 3; ++i) run_covered(10.0 * i, true);
  tree.enter(model, 30);  // another loop calls it too, and it must stay what it is for the first
  tree.mark();
  tree.leave(39);
  tree.end_window(40);
  const CallTree::Threshold least = {.calls = 3, .share = 0.05, .within = 50};
  EXPECT_EQ(tree.repeated(least, take_all), Keys{});
  tree.begin_window({main_of, {fit, true}}, 40);
  tree.end_window(41);
  EXPECT_EQ(tree.repeated(least, take_all), Keys{});
  tree.begin_window({main_of, fit}, 50);
  for (int i = 5; i < 8; ++i) run_covered(10.0 * i, false);
  tree.end_window(80);
  EXPECT_EQ(tree.repeated(least, take_all), Keys{step});
}

TEST(CallTree, LooksBelowHelpersOfSeveralFunctions) {
  CallTree tree;
  tree.begin_window({main_of, fit}, 0);
  for (int i = 0; i < 5; ++i) {
    tree.enter(log_of, 20.0 * i);  // a helper, which is given what it calls
    run_step(tree, 20.0 * i);
    tree.leave(20.0 * i + 10);
  }
  const CallTree::Threshold least = {.calls = 3, .share = 0.05, .within = 50};
  tree.end_window(100);
  EXPECT_EQ(tree.repeated(least, take_all), Keys{log_of});
  tree.begin_window({main_of}, 200);
  tree.enter(log_of, 200);
  tree.mark();
  tree.leave(201);
  tree.end_window(202);
  EXPECT_EQ(tree.repeated(least, take_all), Keys{step});
}

TEST(CallTree, ReturnsOfUnknownCallsChangeNothing) {
  CallTree tree;
  tree.begin_window({}, 0);
  tree.leave(1);
  run_step(tree, 1);
  tree.end_window(11);
  tree.clear();
  EXPECT_EQ(tree.watched(), 0);
  EXPECT_EQ(tree.repeated({.calls = 1, .share = 0, .within = 50}, take_all), Keys{});
}

}  // namespace
}  // namespace janus
