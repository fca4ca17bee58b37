#include "frontend/branches.h"

#include "frontend/merge.h"

namespace janus::frontend {

using python::Object;

namespace {

constexpr size_t kMostForks = 400;    // of one graph
constexpr size_t kDeepestForks = 40;  // inside each other

}  // namespace

Fork::Fork(Interpreter& interpreter, const Truth& truth, int fact)
    : interpreter_(interpreter),
      test_{interpreter.frame().code->facts_key, fact},
      flag_(truth.flag),
      example_(truth.example),
      outer_(interpreter.builder().block()),
      span_(interpreter.user_span()),
      before_(Snapshot::take()),
      heap_before_(interpreter.heap),
      effects_(interpreter.output().effects.size()),
      history_(interpreter.history) {
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
  interpreter_.enter_block(*sides_[side].block);
}

void Fork::leave(Completion completion, Value result) {
  if (interpreter_.output().effects.size() != effects_)
    throw CannotMerge{test_, "one side prints or has another effect outside"};
  Side& side = sides_[at_];
  side.state = before_.again();
  side.heap = interpreter_.heap;
  side.completion = completion;
  side.result = std::move(result);
  side.grad_enabled = interpreter_.grad_enabled;
  side.history = interpreter_.history;
}

Value Fork::merge() {
  Value result = Merger(*this).run();
  for (const Side& side : sides_) interpreter_.history.add(side.history);
  interpreter_.end_scope(*this);
  interpreter_.mark(speculate::LineMark::Kind::graph, "both sides in the graph", span_);
  return result;
}

bool may_merge(Interpreter& interpreter, int fact) {
  if (!interpreter.merges() || interpreter.frame().yielded != nullptr) return false;
  if (interpreter.open_scopes() >= kDeepestForks || interpreter.scope_count() >= kMostForks)
    return false;
  return interpreter.followed({interpreter.frame().code->facts_key, fact}) == nullptr;
}

bool takes_both(Interpreter& interpreter, int fact) {
  const speculate::NodeFact* seen = interpreter.fact(fact);
  // A test of which nothing was seen lies in what was a graph of its own during the profile.
  bool varied = seen == nullptr || (seen->taken > 0) == (seen->not_taken > 0);
  return fact >= 0 && varied && may_merge(interpreter, fact);
}

Value choose(Interpreter& interpreter, const Truth& truth, int fact,
             const std::function<Value()>& first, const std::function<Value()>& second) {
  bool grad_enabled = interpreter.grad_enabled;
  Fork fork(interpreter, truth, fact);
  fork.enter(0);
  fork.leave(Completion::normal, first());
  interpreter.grad_enabled = grad_enabled;
  fork.enter(1);
  fork.leave(Completion::normal, second());
  return fork.merge();
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
  fork->enter(0);
  Completion of_first = run_side(interpreter, first);
  fork->leave(of_first, returned_if(interpreter, of_first));
  interpreter.grad_enabled = grad_enabled;
  fork->enter(1);
  Completion of_second = run_side(interpreter, second);
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

void close_forks(Interpreter& interpreter, size_t count, Completion completion) {
  close_forks_that(interpreter, count, completion);
  if (interpreter.frame().forks.size() > count)
    throw CannotMerge{interpreter.frame().forks.back()->test(),
                      "only one side leaves the block around it"};
}

void close_forks_that(Interpreter& interpreter, size_t count, Completion pending) {
  auto& forks = interpreter.frame().forks;
  while (forks.size() > count && forks.back()->other_completion() == pending)
    close_top(interpreter, pending);
}

}  // namespace janus::frontend
