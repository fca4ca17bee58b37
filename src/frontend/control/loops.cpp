#include "frontend/control/loops.h"

#include "base/policy.h"
#include "frontend/control/branches.h"
#include "frontend/control/effects.h"
#include "frontend/control/fork.h"
#include "frontend/control/journal.h"
#include "frontend/control/loop.h"
#include "frontend/control/loop_parts.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/core/recursion_state.h"
#include "frontend/values/restart.h"
#include "frontend/values/truth.h"
#include "ops/list.h"

namespace janus::frontend {

void loop_in_graph(Interpreter& interpreter, const TestKey& test, const LoopParts& parts) {
  if (!interpreter.takes_first_iteration(test) || !begins_in_all_runs(interpreter, test, parts) ||
      !surely_begins(interpreter, test, parts))
    return Loop(interpreter, test, parts).run();
  interpret_iteration(interpreter, parts);
  LoopParts rest = parts;
  rest.is_rest = true;
  if (parts.iterations)
    rest.iterations = [&]() -> Value {
      const Value all = parts.iterations();
      return all == nullptr
                 ? nullptr
                 : binary(interpreter, syntax::Operator::Sub, all, interpreter.integer(1));
    };
  Loop(interpreter, test, rest).run();
}

void loop_in_graph(Interpreter& interpreter, int fact, const LoopParts& parts) {
  loop_in_graph(interpreter, {interpreter.frame().code->facts_key, fact}, parts);
}

bool iterations_vary(Interpreter& interpreter, int fact) {
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
