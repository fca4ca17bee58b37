// One test whose two sides are interpreted, each from the same state into a block of its own.
#pragma once

#include <memory>
#include <optional>

#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

/// One test whose two sides are being interpreted.
class Fork final : public Scope {
 public:
  struct Side {
    std::unique_ptr<graph::Block> block = std::make_unique<graph::Block>();
    std::optional<SavedState> state;  ///< as it was left
    Completion completion = Completion::normal;
    Value result;
  };

  /// Side 0 is the one where the test holds.
  Fork(Interpreter& interpreter, const Truth& truth, int fact);
  Fork(Interpreter& interpreter, const Truth& truth, TestKey test);
  ~Fork() override;

  const TestKey* test() const override { return &test_; }
  /// Goes on with a side, from where it was left.
  void enter(size_t side);
  /// Puts the side at hand aside; `result` is the value of an expression, or what is returned.
  void leave(Completion completion, Value result = nullptr);
  /// Goes on with this side as if there was no other.
  void adopt(size_t side);
  /// Goes on with the side that is not the one at hand; gives what it returned.
  Value adopt_other();

  /// Goes on with the side that is not the one at hand; gives what that returned or raised.
  Value enter_other() {
    enter(1 - at_);
    return sides_[at_].result;
  }
  /// The side that is not the one at hand ended so after all.
  void end_other(Completion completion, Value result) {
    sides_[1 - at_].completion = completion;
    sides_[1 - at_].result = std::move(result);
  }
  const Value& other_result() const { return sides_[1 - at_].result; }

  bool is_branch() const override { return true; }
  bool is_inside(const graph::Block* block) const override {
    return block == sides_[at_].block.get();
  }
  void add_entry_object(Changeable& object) override { before_.objects.add(object); }
  std::optional<bool> outcome(const graph::Value* flag) const override {
    return flag == flag_ ? std::optional(at_ == 0) : std::nullopt;
  }

  /// How the side ended that is not the one at hand.
  Completion other_completion() const { return sides_[1 - at_].completion; }

  // --- for the merge (merge.h), when both sides were left

  Side& side(size_t which) { return sides_[which]; }
  const Side& side(size_t which) const { return sides_[which]; }
  Interpreter& interpreter() const { return interpreter_; }
  const graph::SourceSpan& span() const { return span_; }
  SavedState& before() { return before_; }
  graph::Block& outer() const { return outer_; }
  graph::Value* flag() const { return flag_; }
  /// What the test was in the call at hand.
  const python::Object& example() const { return example_; }
  /// How many results the graph had before the test.
  size_t result_count() const { return results_; }
  /// The sides are one path again: the scope ends.
  void close();

 private:
  void check_effects() const;

  Interpreter& interpreter_;
  TestKey test_;
  graph::Value* flag_;
  python::Object example_;
  graph::Block& outer_;
  graph::SourceSpan span_;
  SavedState before_;
  size_t results_, differentiable_results_;  // how many there were before
  Side sides_[2];
  size_t at_ = 0;
};

}  // namespace janus::frontend
