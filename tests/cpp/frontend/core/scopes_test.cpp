// Open branches and loops: their order, what is followed, and what is known of flags.
#include "frontend/core/scopes.h"

#include <gtest/gtest.h>

#include "ops/list.h"

namespace janus::frontend {

namespace {

/// A branch whose flag is true in the block at hand.
class Branch final : public Scope {
 public:
  explicit Branch(const graph::Value* flag = nullptr, const graph::Block* block = nullptr)
      : flag_(flag), block_(block) {}
  bool is_inside(const graph::Block* block) const override { return block == block_; }
  void add_entry_object(Changeable& /*object*/) override {}
  const TestKey* test() const override { return &test_; }
  bool is_branch() const override { return true; }
  std::optional<bool> outcome(const graph::Value* flag) const override {
    return flag_ != nullptr && flag == flag_ ? std::optional(true) : std::nullopt;
  }

 private:
  const graph::Value* flag_;
  const graph::Block* block_;
  TestKey test_;
};

/// A loop, which no exception leaves.
class Loop final : public Scope {
 public:
  bool is_inside(const graph::Block* /*block*/) const override { return false; }
  void add_entry_object(Changeable& /*object*/) override {}
  const TestKey* test() const override { return nullptr; }
};

class ScopesTest : public testing::Test {
 protected:
  ScopesTest() { call_.tree = &tree_; }

  syntax::Tree tree_;
  speculate::Call call_;
  std::vector<CannotMerge> followed_;
};

}  // namespace

TEST_F(ScopesTest, TheInnermostOneIsSuspect) {
  GraphWriter writer(call_);
  Scopes scopes(writer, followed_);
  Branch branch;
  Loop loop;
  scopes.begin_scope(branch);
  EXPECT_TRUE(scopes.suspect().has_value());
  scopes.begin_scope(loop);
  EXPECT_FALSE(scopes.suspect().has_value());
  scopes.abandon_scopes(branch);
  EXPECT_EQ(scopes.open_scopes(), 1U);
  scopes.end_scope(branch);
  EXPECT_EQ(scopes.open_scopes(), 0U);
  EXPECT_EQ(scopes.scope_count(), 2U);
}

TEST_F(ScopesTest, ALoopIsNoBranch) {
  GraphWriter writer(call_);
  Scopes scopes(writer, followed_);
  Branch branch;
  Loop loop;
  scopes.begin_scope(loop);
  scopes.begin_scope(branch);
  EXPECT_TRUE(scopes.only_branches_since(1));
  EXPECT_FALSE(scopes.only_branches_since(0));
}

TEST_F(ScopesTest, ABranchKnowsItsFlag) {
  GraphWriter writer(call_);
  Scopes scopes(writer, followed_);
  graph::Value* flag = writer.builder().input(graph::Type::boolean(), "flag");
  graph::Value* negated = op::scalar_not(writer.builder(), {flag});
  EXPECT_EQ(scopes.outcome_of(flag), std::nullopt);
  Branch branch(flag);
  scopes.begin_scope(branch);
  EXPECT_EQ(scopes.outcome_of(flag), true);
  EXPECT_EQ(scopes.outcome_of(negated), false);
  scopes.end_scope(branch);
  EXPECT_EQ(scopes.outcome_of(flag), std::nullopt);
}

TEST_F(ScopesTest, AGuardHoldsWhereItsBlockIsOpen) {
  GraphWriter writer(call_);
  Scopes scopes(writer, followed_);
  graph::Value* flag = writer.builder().input(graph::Type::boolean(), "flag");
  scopes.note_guarded(flag, false);
  EXPECT_EQ(scopes.outcome_of(flag), false);
}

TEST_F(ScopesTest, ATestIsFollowedForItsReason) {
  followed_.push_back({.test = {{}, 1}, .why = "sides differ"});
  followed_.push_back({.test = {{}, 2}, .why = "", .in_first_iteration = true});
  GraphWriter writer(call_);
  const Scopes scopes(writer, followed_);
  ASSERT_NE(scopes.followed({{}, 1}), nullptr);
  EXPECT_EQ(scopes.followed({{}, 1})->why, "sides differ");
  EXPECT_EQ(scopes.followed({{}, 2}), nullptr);
  EXPECT_TRUE(scopes.takes_first_iteration({{}, 2}));
  EXPECT_FALSE(scopes.leaves_sizes({{}, 1}));
}

}  // namespace janus::frontend
