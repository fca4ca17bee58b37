#include "frontend/branches.h"

#include "frontend/effects.h"
#include "frontend/merge.h"
#include "frontend/recursion.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr size_t kMostForks = 400;    // of one graph
constexpr size_t kDeepestForks = 40;  // inside each other

}  // namespace

Fork::Fork(Interpreter& interpreter, const Truth& truth, int fact)
    : Fork(interpreter, truth, TestKey{interpreter.frame().code->facts_key, fact}) {}

Fork::Fork(Interpreter& interpreter, const Truth& truth, TestKey test)
    : interpreter_(interpreter),
      test_(std::move(test)),
      flag_(truth.flag),
      example_(truth.example),
      outer_(interpreter.builder().block()),
      span_(interpreter.user_span()),
      before_(Snapshot::take()),
      heap_before_(interpreter.heap),
      effects_(interpreter.output().effects.size()),
      results_(interpreter.results().size()),
      differentiable_results_(interpreter.output().differentiable_results.size()),
      history_(interpreter.history),
      known_classes_(interpreter.known_classes) {
  interpreter.begin_scope(*this);
}

Fork::~Fork() = default;

void Fork::enter(size_t side) {
  at_ = side;
  before_.restore();
  interpreter_.heap = sides_[side].state ? sides_[side].heap : heap_before_;
  interpreter_.history = sides_[side].state ? sides_[side].history : history_;
  if (sides_[side].state) {
    sides_[side].state->restore();
    interpreter_.grad_enabled = sides_[side].grad_enabled;
  }
  auto& effects = interpreter_.output().effects;
  effects.resize(effects_);
  for (speculate::Effect& effect : sides_[side].effects) effects.push_back(std::move(effect));
  sides_[side].effects.clear();
  interpreter_.enter_block(*sides_[side].block);
  interpreter_.known_classes = sides_[side].state ? sides_[side].known_classes : known_classes_;
  if (!sides_[side].state) interpreter_.learn_classes(flag_, side == 0);
}

void Fork::leave(Completion completion, Value result) {
  if (interpreter_.output().differentiable_results.size() != differentiable_results_)
    throw CannotMerge{test_, "one side shows a tensor that has a gradient"};
  Side& side = sides_[at_];
  put_effects_aside(side);
  side.state = before_.again();
  side.heap = interpreter_.heap;
  side.completion = completion;
  side.result = std::move(result);
  side.grad_enabled = interpreter_.grad_enabled;
  side.history = interpreter_.history;
  side.known_classes = interpreter_.known_classes;
}

void Fork::put_effects_aside(Side& side) {
  auto& effects = interpreter_.output().effects;
  for (size_t i = effects_; i < effects.size(); ++i) {
    if (!may_be_conditional(effects[i].call))
      throw CannotMerge{test_, "one side warns or has another effect outside"};
    side.effects.push_back(std::move(effects[i]));
  }
  effects.resize(effects_);
}

void Fork::adopt(size_t side) {
  if (at_ != side) enter(side);
  graph::Block& block = *sides_[side].block;
  for (graph::Node* node : block.nodes) node->parent = &outer_;
  outer_.nodes.insert(outer_.nodes.end(), block.nodes.begin(), block.nodes.end());
  block.nodes.clear();
  interpreter_.end_scope(*this);
  interpreter_.enter_block(outer_);
}

Value Fork::adopt_other() {
  interpreter_.abandon_scopes(*this);
  adopt(1 - at_);
  return sides_[at_].result;
}

Value Fork::merge() {
  Value result = Merger(*this).run();
  for (const Side& side : sides_) interpreter_.history.add(side.history);
  interpreter_.known_classes = std::move(known_classes_);
  interpreter_.end_scope(*this);
  interpreter_.mark(speculate::LineMark::Kind::graph, "both sides in the graph", span_);
  return result;
}

bool has_room_for_fork(const Interpreter& interpreter) {
  return interpreter.open_scopes() < kDeepestForks && interpreter.scope_count() < kMostForks;
}

bool may_merge(Interpreter& interpreter, int fact) {
  if (!interpreter.merges() || interpreter.frame().yielded != nullptr) return false;
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

Value choose(Interpreter& interpreter, const Truth& truth, const TestKey& test,
             const std::function<Value()>& first, const std::function<Value()>& second) {
  bool grad_enabled = interpreter.grad_enabled;
  Fork fork(interpreter, truth, test);
  std::optional<UnknownResult> unknown;
  size_t forks = interpreter.frame().forks.size();
  fork.enter(0);
  try {
    fork.leave(Completion::normal, first());
  } catch (const UnknownResult& result) {
    unknown = result;
    abandon(interpreter, fork, forks);
  }
  interpreter.grad_enabled = grad_enabled;
  fork.enter(1);
  try {
    Value result = second();
    if (!unknown) {
      fork.leave(Completion::normal, std::move(result));
      return fork.merge();
    }
    fork.adopt(1);
    return result;
  } catch (const UnknownResult&) {
    if (unknown) throw;
  }
  abandon(interpreter, fork, forks);
  return fork.adopt_other();
}

namespace {

/// Executes a side to its end; forks that it leaves open must end as it does.
Completion run_side(Interpreter& interpreter, const std::function<Completion()>& side) {
  size_t count = interpreter.frame().forks.size();
  Completion completion = side();
  close_forks(interpreter, count, completion);
  return completion;
}

Value returned_if(Interpreter& interpreter, Completion completion) {
  return completion == Completion::return_ ? interpreter.frame().returned : nullptr;
}

}  // namespace

Completion choose_statements(Interpreter& interpreter, const Truth& truth, int fact,
                             const std::function<Completion()>& first,
                             const std::function<Completion()>& second) {
  bool grad_enabled = interpreter.grad_enabled;
  auto fork = std::make_shared<Fork>(interpreter, truth, fact);
  std::optional<UnknownResult> unknown;
  size_t forks = interpreter.frame().forks.size();
  Completion of_first = Completion::normal, of_second = Completion::normal;
  fork->enter(0);
  try {
    of_first = run_side(interpreter, first);
    fork->leave(of_first, returned_if(interpreter, of_first));
  } catch (const UnknownResult& result) {
    unknown = result;
    abandon(interpreter, *fork, forks);
  }
  interpreter.grad_enabled = grad_enabled;
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
  if (of_first == of_second) {
    fork->leave(of_second, returned_if(interpreter, of_second));
    Value result = fork->merge();
    if (of_first == Completion::return_) interpreter.frame().returned = result;
    return of_first;
  }
  if (of_first == Completion::normal) {
    fork->leave(of_second, returned_if(interpreter, of_second));
    fork->enter(0);
    of_second = Completion::normal;
  }
  interpreter.frame().forks.push_back(std::move(fork));
  return of_second;
}

namespace {

void close_top(Interpreter& interpreter, Completion completion) {
  std::shared_ptr<Fork> fork = std::move(interpreter.frame().forks.back());
  interpreter.frame().forks.pop_back();
  fork->leave(completion, returned_if(interpreter, completion));
  Value result = fork->merge();
  if (completion == Completion::return_) interpreter.frame().returned = result;
}

}  // namespace

bool return_instead(Interpreter& interpreter) {
  auto& forks = interpreter.frame().forks;
  while (!forks.empty()) {
    std::shared_ptr<Fork> fork = std::move(forks.back());
    forks.pop_back();
    if (fork->other_completion() != Completion::return_) continue;
    interpreter.frame().returned = fork->adopt_other();
    return true;
  }
  return false;
}

void close_forks(Interpreter& interpreter, size_t count, Completion completion) {
  close_forks_that(interpreter, count, completion);
  if (interpreter.frame().forks.size() > count)
    throw CannotMerge{*interpreter.frame().forks.back()->test(),
                      "only one side leaves the block around it"};
}

void close_forks_that(Interpreter& interpreter, size_t count, Completion pending) {
  auto& forks = interpreter.frame().forks;
  while (forks.size() > count && forks.back()->other_completion() == pending)
    close_top(interpreter, pending);
}

}  // namespace janus::frontend
