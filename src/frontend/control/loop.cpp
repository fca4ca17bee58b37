#include "frontend/control/loop.h"

#include "frontend/control/branches.h"
#include "frontend/control/fork.h"
#include "frontend/control/journal.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/recursion_state.h"
#include "frontend/values/restart.h"
#include "frontend/values/truth.h"
#include "graph/functions.h"
#include "ops/list.h"

namespace janus::frontend {

void interpret_iteration(Frames& frames, const LoopParts& parts) {
  const auto& forks = frames.frame().forks;
  const size_t before = forks.size();
  parts.iteration();
  while (forks.size() > before) close_forks_that(frames, before, forks.back()->other_completion());
}

void Loop::run() {
  Journal::Iterations iterations(interpreter_);
  interpreter_.begin_scope(*this);
  const size_t forks = interpreter_.frame().forks.size();
  try {
    while (!attempt_iteration())
      if (++attempt_ == policy::kMostLoopAttempts)
        fail(cat("loop-carried state did not reach a fixpoint", changing_));
  } catch (const UnknownResult&) {
    if (!interpreter_.recursion().leaves_loops_out) throw;
    interpreter_.recursion().left_loop_out = true;
    interpreter_.frame().forks.resize(forks);
    return leave_out();
  }
  interpreter_.end_scope(*this);
  const History of_iteration = interpreter_.history;
  make_node();
  interpreter_.history.add(of_iteration);
  iterations.finish();
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

bool Loop::attempt_iteration() {
  put_away_blocks();
  condition_ = std::make_unique<graph::Block>();
  body_ = std::make_unique<graph::Block>();
  enter(*condition_);
  set_state(parameters_of(*condition_));
  interpret_test();
  enter(*body_);
  set_state(parameters_of(*body_));
  interpret_iteration();
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
  if (!only_read(start, interpreter_)) fail("the test of the loop has a side effect");
  graph::Value* flag = truth.known ? interpreter_.builder().constant(*truth.known) : truth.flag;
  condition_->results = {flag};
}

void Loop::interpret_iteration() {
  frontend::interpret_iteration(interpreter_, parts_);
  if (interpreter_.output().differentiable_results.size() != differentiable_results_)
    fail("a differentiable tensor leaves the run within the loop");
  // What a text was made of is in the journal by now, or nobody can read that text.
  interpreter_.drop_results(results_);
  graph::for_each_node(*body_, [&](const graph::Node& node) {
    if (node.op == &op::gradient) fail("gradients inside a loop");
  });
}

bool begins_in_all_runs(Interpreter& interpreter, const TestKey& test, const LoopParts& parts) {
  if (parts.may_be_empty) return false;
  if (const auto* chosen = interpreter.call().chosen)
    for (const auto& choice : *chosen)  // it was seen after all that no iteration came
      if (choice.fact == test.fact && test.facts_key.is(choice.facts_key.get()) && !choice.outcome)
        return false;
  const speculate::NodeFact* seen = interpreter.fact(test.fact);
  if (parts.is_rest) return seen != nullptr && seen->least_trips > 1;
  // Of a recursion the profile tells of all activations alike.
  return interpreter.recursion().is_first_activation(test) || seen == nullptr ||
         seen->least_trips != 0;
}

bool surely_begins(Guards& guards, const TestKey& test, const LoopParts& parts) {
  const Truth truth = parts.test();
  return truth.known ? *truth.known
                     : guards.follow(truth.flag, python::Object::borrow(Py_True), test.fact);
}

}  // namespace janus::frontend
