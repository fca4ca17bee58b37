#include "frontend/control/loop.h"
#include "base/policy.h"

#include "frontend/core/exceptions.h"
#include "frontend/core/recursion_state.h"
#include "ops/list.h"
#include "frontend/values/restart.h"
#include "frontend/values/truth.h"
#include "frontend/control/effects.h"
#include "frontend/core/operations.h"
#include "frontend/control/branches.h"
#include "frontend/control/journal.h"

namespace janus::frontend {

namespace {

/// One round. `continue`, `break` and `return` (which it has noted) and its end are one behind it.
void run_round(Interpreter& interpreter, const LoopParts& parts) {
  const auto& forks = interpreter.frame().forks;
  const size_t before = forks.size();
  parts.round();
  while (forks.size() > before)
    close_forks_that(interpreter, before, forks.back()->other_completion());
}

}  // namespace

void Loop::run() {
  Journal::Rounds rounds(interpreter_);
  interpreter_.begin_scope(*this);
  const size_t forks = interpreter_.frame().forks.size();
  try {
    while (!attempt_round())
      if (++attempt_ == policy::kMostLoopAttempts) fail("what its rounds change does not settle");
  } catch (const UnknownResult&) {
    if (!interpreter_.recursion().leaves_loops_out) throw;
    interpreter_.recursion().left_loop_out = true;
    interpreter_.frame().forks.resize(forks);
    return leave_out();
  }
  interpreter_.end_scope(*this);
  const History of_round = interpreter_.history;
  make_node();
  interpreter_.history.add(of_round);
  rounds.finish();
}

bool Loop::keeps(const Tensor& tensor) const {
  return before_.objects.find(&tensor) != nullptr ||
         (at_ != nullptr && tensor.value != nullptr && tensor.value->owner == at_);
}

void Loop::leave_out() {
  before_.restore(interpreter_);
  interpreter_.abandon_scopes(*this);
  interpreter_.end_scope(*this);
  interpreter_.enter_block(outer_);
}

void Loop::enter(graph::Block& block) {
  at_ = &block;
  interpreter_.enter_block(block);
}

Loop::~Loop() { put_away_blocks(); }

void Loop::put_away_blocks() {
  interpreter_.put_away(std::move(condition_));
  interpreter_.put_away(std::move(body_));
}

bool Loop::attempt_round() {
  put_away_blocks();
  condition_ = std::make_unique<graph::Block>();
  body_ = std::make_unique<graph::Block>();
  enter(*condition_);
  set_state(parameters_of(*condition_));
  interpret_test();
  enter(*body_);
  set_state(parameters_of(*body_));
  interpret_round();
  return collect_changes();
}

Parameter Loop::parameters_of(graph::Block& block) {
  return [this, &block](graph::Value* initial) {
    return interpreter_.builder().graph().new_parameter(block, initial->type, initial->name);
  };
}

void Loop::interpret_test() {
  const SavedState start = before_.again(interpreter_);
  Truth truth = parts_.test();
  if (!only_read(start, interpreter_)) fail("its test changes something");
  graph::Value* flag = truth.known ? interpreter_.builder().constant(*truth.known) : truth.flag;
  condition_->results = {flag};
}

void Loop::interpret_round() {
  run_round(interpreter_, parts_);
  if (interpreter_.output().differentiable_results.size() != differentiable_results_)
    fail("it shows a tensor that has a gradient");
  // What a text was made of is in the journal by now, or nobody can read that text.
  interpreter_.drop_results(results_);
  graph::for_each_node(*body_, [&](const graph::Node& node) {
    if (node.op == &op::gradient) fail("gradients inside a loop");
  });
}

bool begins_in_all_runs(Interpreter& interpreter, const TestKey& test, const LoopParts& parts) {
  if (parts.may_be_empty) return false;
  if (const auto* chosen = interpreter.call().chosen)
    for (const auto& choice : *chosen)  // it was seen after all that no round came
      if (choice.fact == test.fact && test.facts_key.is(choice.facts_key.get()) && !choice.outcome)
        return false;
  const speculate::NodeFact* seen = interpreter.fact(test.fact);
  if (parts.is_rest) return seen != nullptr && seen->least_trips > 1;
  // Of a recursion the profile tells of all activations alike.
  return interpreter.recursion().is_first_activation(test) || seen == nullptr ||
         seen->least_trips != 0;
}

bool surely_begins(Interpreter& interpreter, const TestKey& test, const LoopParts& parts) {
  const Truth truth = parts.test();
  return truth.known ? *truth.known
                     : interpreter.follow(truth.flag, python::Object::borrow(Py_True), test.fact);
}

void loop_in_graph(Interpreter& interpreter, const TestKey& test, const LoopParts& parts) {
  if (!interpreter.takes_first_round(test) || !begins_in_all_runs(interpreter, test, parts) ||
      !surely_begins(interpreter, test, parts))
    return Loop(interpreter, test, parts).run();
  run_round(interpreter, parts);
  LoopParts rest = parts;
  rest.is_rest = true;
  if (parts.rounds)
    rest.rounds = [&]() -> Value {
      const Value all = parts.rounds();
      return all == nullptr
                 ? nullptr
                 : binary(interpreter, syntax::Operator::Sub, all, interpreter.integer(1));
    };
  Loop(interpreter, test, rest).run();
}

void loop_in_graph(Interpreter& interpreter, int fact, const LoopParts& parts) {
  loop_in_graph(interpreter, {interpreter.frame().code->facts_key, fact}, parts);
}

bool rounds_vary(Interpreter& interpreter, int fact) {
  const speculate::NodeFact* seen = interpreter.fact(fact);
  // A loop that runs but was never counted was a graph of its own while this one was profiled.
  bool is_stable = seen != nullptr && seen->most_trips >= 0 &&
                   seen->least_trips == seen->most_trips && !options().is_disabled("unroll");
  return !is_stable && may_merge(interpreter, fact);
}

Truth peek(Interpreter& interpreter, int fact, const std::function<Truth()>& test) {
  const SavedState before = SavedState::of(interpreter);
  graph::Block& block = interpreter.builder().block();
  auto scratch = std::make_unique<graph::Block>();
  interpreter.enter_block(*scratch);
  const size_t forks = interpreter.frame().forks.size();
  Truth truth;
  try {
    truth = test();
  } catch (const Raised&) {  // as it will when it is evaluated
    truth = {.known = true};
  }
  if (interpreter.frame().forks.size() != forks)
    throw CannotMerge{*interpreter.frame().forks.back()->test(), "the test of a loop may raise"};
  if (before.objects.has_moved_iterator())
    throw CannotMerge{{interpreter.frame().code->facts_key, fact},
                      "the test of a loop takes from an iterator"};
  before.restore(interpreter);
  interpreter.enter_block(block);
  interpreter.put_away(std::move(scratch));
  truth.flag = nullptr;
  return truth;
}

}  // namespace janus::frontend
