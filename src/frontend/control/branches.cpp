#include "frontend/control/branches.h"

#include <algorithm>

#include "base/policy.h"
#include "frontend/control/effects.h"
#include "frontend/control/fork.h"
#include "frontend/control/merge.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/core/recursion_state.h"
#include "frontend/values/formula.h"
#include "frontend/values/restart.h"
#include "frontend/values/truth.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

bool has_room_for_fork(const Scopes& scopes) {
  return scopes.open_scopes() < policy::kDeepestForks && scopes.scope_count() < policy::kMostForks;
}

bool may_merge(Interpreter& interpreter, int fact) {
  if (!interpreter.merges() || interpreter.frame().runs_ahead) return false;
  if (!has_room_for_fork(interpreter)) return false;
  return interpreter.followed({interpreter.frame().code->facts_key, fact}) == nullptr;
}

bool takes_both(Interpreter& interpreter, int fact) {
  const speculate::NodeFact* seen = interpreter.fact(fact);
  // A test of which nothing was seen lies in what was a graph of its own during the profile.
  bool varied = seen == nullptr || (seen->taken > 0) == (seen->not_taken > 0) ||
                options().is_disabled("specialise_branches");
  return fact >= 0 && varied && may_merge(interpreter, fact);
}

namespace {

/// Whether the number follows from a remainder, by comparisons and the like.
bool follows_from_remainder(const graph::Value* number, int steps = 4) {
  const graph::Node* made_by = number->definition;
  if (made_by == nullptr || !number->type.is_number()) return false;
  if (made_by->op == &op::scalar_mod) return true;
  if (made_by->op == &op::size) return is_of_remainder(made_by->attributes.get<graph::Dim>("of"));
  return steps > 0 && std::ranges::any_of(made_by->inputs, [&](const graph::Value* input) {
           return follows_from_remainder(input, steps - 1);
         });
}

/// Whether the number is made, in a few steps, of an int that differs from call to call.
bool follows_from_varying_int(const graph::Value* number, int steps = 4) {
  if (!number->type.is_number()) return false;
  const graph::Node* made_by = number->definition;
  if (made_by == nullptr) return number->type == graph::Type::i64();
  if (made_by->op == &op::size) return has_varying_int(made_by->attributes.get<graph::Dim>("of"));
  return steps > 0 && std::ranges::any_of(made_by->inputs, [&](const graph::Value* input) {
           return follows_from_varying_int(input, steps - 1);
         });
}

/// Whether it says on which side of a bound such an int is.
bool bounds_varying_int(const graph::Value* flag) {
  const graph::Node* made_by = flag->definition;
  if (made_by == nullptr) return false;
  if (made_by->op == &op::scalar_not) return bounds_varying_int(made_by->inputs[0]);
  static constexpr const graph::OpDef* kOrders[] = {&op::scalar_lt, &op::scalar_le, &op::scalar_gt,
                                                    &op::scalar_ge};
  return std::ranges::find(kOrders, made_by->op) != std::end(kOrders) &&
         std::ranges::any_of(made_by->inputs, [](const graph::Value* input) {
           return follows_from_varying_int(input);
         });
}

/// Whether the test comes out both ways sooner or later, whatever the first calls have shown.
bool will_vary(const Truth& truth) {
  return truth.flag != nullptr &&
         (follows_from_remainder(truth.flag) || bounds_varying_int(truth.flag));
}

}  // namespace

bool takes_both(Interpreter& interpreter, int fact, const Truth& truth) {
  if (takes_both(interpreter, fact)) return true;
  return fact >= 0 && will_vary(truth) && may_merge(interpreter, fact);
}

namespace {

/// Leaves what was begun in a side that needs a result that is not known yet.
void abandon(Interpreter& interpreter, const Fork& fork, size_t forks) {
  interpreter.frame().forks.resize(forks);
  interpreter.abandon_scopes(fork);
}

}  // namespace

Value choose(Interpreter& interpreter, const Truth& truth, int fact,
             const std::function<Value()>& first, const std::function<Value()>& second) {
  return choose(interpreter, truth, TestKey{interpreter.frame().code->facts_key, fact}, first,
                second);
}

namespace {

/// A side of an expression: what it gives, or raises. Others that raise may not stay open in it.
struct ValueOfSide {
  Value value;
  bool raises = false;
};

ValueOfSide value_of_side(const Frames& frames, const std::function<Value()>& side) {
  const auto& forks = frames.frame().forks;
  const size_t before = forks.size();
  ValueOfSide result;
  try {
    result.value = side();
  } catch (const Raised& raised) {
    result = {raised.exception, true};
  }
  if (forks.size() != before)
    throw CannotMerge{*forks.back()->test(), "one side raises within an expression"};
  return result;
}

void expect_one_exception(const Fork& fork, const Value& merged) {
  if (!is_exception(merged)) throw CannotMerge{*fork.test(), "two kinds of exceptions"};
}

/// Both sides were evaluated, the second one is at hand: where one of them raises, goes on with the
/// other.
Value end_choice(Frames& frames, std::shared_ptr<Fork> fork, const ValueOfSide& first,
                 const ValueOfSide& second) {
  fork->leave(second.raises ? Completion::raise_ : Completion::normal, second.value);
  if (first.raises == second.raises) {
    const Value merged = merge(*fork);
    if (!first.raises) return merged;
    expect_one_exception(*fork, merged);
    throw Raised{merged};
  }
  fork->enter(first.raises ? 1 : 0);
  frames.frame().forks.push_back(std::move(fork));
  return first.raises ? second.value : first.value;
}

}  // namespace

Value choose(Interpreter& interpreter, const Truth& truth, const TestKey& test,
             const std::function<Value()>& first, const std::function<Value()>& second) {
  auto fork = std::make_shared<Fork>(interpreter, truth, test);
  std::optional<UnknownResult> unknown;
  size_t forks = interpreter.frame().forks.size();
  ValueOfSide of_first;
  fork->enter(0);
  try {
    of_first = value_of_side(interpreter, first);
    fork->leave(of_first.raises ? Completion::raise_ : Completion::normal, of_first.value);
  } catch (const UnknownResult& result) {
    unknown = result;
    abandon(interpreter, *fork, forks);
  }
  fork->enter(1);
  try {
    const ValueOfSide of_second = value_of_side(interpreter, second);
    if (!unknown) return end_choice(interpreter, std::move(fork), of_first, of_second);
    fork->adopt(1);
    if (of_second.raises) throw Raised{of_second.value};
    return of_second.value;
  } catch (const UnknownResult&) {
    if (unknown) throw;
  }
  abandon(interpreter, *fork, forks);
  const Value result = fork->adopt_other();
  if (of_first.raises) throw Raised{result};
  return result;
}

namespace {

/// Executes a side to its end; forks that it leaves open must end as it does.
Completion run_side(Frames& frames, const std::function<Completion()>& side) {
  size_t count = frames.frame().forks.size();
  Completion completion = side();
  close_forks(frames, count, completion);
  return completion;
}

/// What the side at hand returns or raises.
Value given_by(const Frames& frames, Completion completion) {
  const Frame& frame = frames.frame();
  return completion == Completion::return_  ? frame.returned
         : completion == Completion::raise_ ? frame.raised
                                            : nullptr;
}

void give(Frames& frames, Completion completion, Value result) {
  Frame& frame = frames.frame();
  if (completion == Completion::return_) frame.returned = std::move(result);
  if (completion == Completion::raise_) frame.raised = std::move(result);
}

/// The interpreter goes on with the side that ended by the lower one.
int rank_of(Completion completion) {
  return completion == Completion::normal ? 0 : completion == Completion::raise_ ? 2 : 1;
}

/// Both sides ended, the one at hand by `completion`: they are one, or one stays open. Gives how
/// the side ended that is then at hand.
Completion end_sides(Frames& frames, std::shared_ptr<Fork> fork, Completion completion) {
  const Completion of_other = fork->other_completion();
  fork->leave(completion, given_by(frames, completion));
  if (of_other == completion) {
    const Value merged = merge(*fork);
    if (completion == Completion::raise_) expect_one_exception(*fork, merged);
    give(frames, completion, merged);
    return completion;
  }
  const bool changes = rank_of(of_other) < rank_of(completion);
  if (changes) give(frames, of_other, fork->enter_other());
  frames.frame().forks.push_back(std::move(fork));
  return changes ? of_other : completion;
}

}  // namespace

Completion choose_statements(Interpreter& interpreter, const Truth& truth, int fact,
                             const std::function<Completion()>& first,
                             const std::function<Completion()>& second) {
  auto fork = std::make_shared<Fork>(interpreter, truth, fact);
  std::optional<UnknownResult> unknown;
  size_t forks = interpreter.frame().forks.size();
  Completion of_first = Completion::normal, of_second = Completion::normal;
  fork->enter(0);
  try {
    of_first = run_side(interpreter, first);
    fork->leave(of_first, given_by(interpreter, of_first));
  } catch (const UnknownResult& result) {
    unknown = result;
    abandon(interpreter, *fork, forks);
  }
  fork->enter(1);
  try {
    of_second = run_side(interpreter, second);
  } catch (const UnknownResult&) {
    if (unknown) throw;
    abandon(interpreter, *fork, forks);
    interpreter.frame().returned = fork->adopt_other();
    return of_first;
  }
  if (unknown) {
    fork->adopt(1);
    return of_second;
  }
  return end_sides(interpreter, std::move(fork), of_second);
}

namespace {

void close_top(Frames& frames, Completion completion) {
  std::shared_ptr<Fork> fork = std::move(frames.frame().forks.back());
  frames.frame().forks.pop_back();
  end_sides(frames, std::move(fork), completion);
}

}  // namespace

Completion on_each_side(Frames& frames, size_t count, Completion completion,
                        const std::function<bool(Completion)>& concerns,
                        const std::function<Completion(Completion)>& action) {
  auto& forks = frames.frame().forks;
  close_forks_that(frames, count, completion);
  size_t outermost = forks.size();
  for (size_t i = forks.size(); i-- > count;)
    if (concerns(forks[i]->other_completion())) outermost = i;
  const size_t before = forks.size();
  if (concerns(completion)) completion = action(completion);
  if (outermost == before) return completion;
  close_forks(frames, before, completion);
  for (size_t i = before; i-- > outermost;) {
    std::shared_ptr<Fork> fork = forks.back();
    const Completion of_other = fork->other_completion();
    if (forks.size() != i + 1 || !concerns(of_other))
      throw CannotMerge{*fork->test(), "only one side leaves the block around it"};
    forks.pop_back();
    fork->leave(completion, given_by(frames, completion));
    give(frames, of_other, fork->enter_other());
    const Completion ended = action(of_other);
    close_forks(frames, i, ended);
    completion = end_sides(frames, std::move(fork), ended);
  }
  return completion;
}

Value outcome_of(Interpreter& interpreter, Completion completion) {
  Frame& frame = interpreter.frame();
  const auto raising = std::ranges::find_if(
      frame.forks, [](const auto& fork) { return fork->other_completion() == Completion::raise_; });
  if (completion == Completion::raise_) {
    close_forks_that(interpreter, 0, completion);
    if (frame.forks.empty()) throw Raised{frame.raised};
  } else if (raising == frame.forks.end()) {
    close_forks(interpreter, 0, Completion::return_);
    return frame.returned;
  }
  const TestKey test =
      raising == frame.forks.end() ? *frame.forks.back()->test() : *(*raising)->test();
  const auto outcome = [&](Completion ended, const Value& value) -> Value {
    const bool raises = ended == Completion::raise_;
    return std::make_shared<Outcome>(interpreter.boolean(raises), raises ? nullptr : value,
                                     raises ? value : nullptr, test);
  };
  for (const auto& fork : frame.forks)
    fork->end_other(Completion::return_, outcome(fork->other_completion(), fork->other_result()));
  frame.returned = outcome(completion, given_by(interpreter, completion));
  close_forks(interpreter, 0, Completion::return_);
  return frame.returned;
}

bool return_instead(Frames& frames) {
  auto& forks = frames.frame().forks;
  while (!forks.empty()) {
    std::shared_ptr<Fork> fork = std::move(forks.back());
    forks.pop_back();
    if (fork->other_completion() != Completion::return_) continue;
    frames.frame().returned = fork->adopt_other();
    return true;
  }
  return false;
}

void close_forks(Frames& frames, size_t count, Completion completion) {
  close_forks_that(frames, count, completion);
  if (frames.frame().forks.size() > count)
    throw CannotMerge{*frames.frame().forks.back()->test(),
                      "only one side leaves the block around it"};
}

void close_forks_that(Frames& frames, size_t count, Completion pending) {
  auto& forks = frames.frame().forks;
  while (forks.size() > count && forks.back()->other_completion() == pending)
    close_top(frames, pending);
}

}  // namespace janus::frontend
