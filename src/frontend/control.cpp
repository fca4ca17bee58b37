// Loops over known things are unrolled, tests that the graph computes are followed and guarded;
// `with` runs the context managers' own code.
#include "frontend/attributes.h"
#include "frontend/branches.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/expressions.h"
#include "frontend/statements.h"

namespace janus::frontend {

Completion execute_if(Interpreter& interpreter, const syntax::If& statement) {
  int fact = statement.fact;
  Truth truth = evaluate_truth(interpreter, *statement.test, fact);
  auto body = [&] { return execute(interpreter, statement.body); };
  auto orelse = [&] { return execute(interpreter, statement.orelse); };
  if (!truth.known && takes_both(interpreter, fact))
    return choose_statements(interpreter, truth, fact, body, orelse);
  bool side = truth.known ? *truth.known : interpreter.follow(truth.flag, truth.example, fact);
  return side ? body() : orelse();
}

namespace {

/// Ends a round of an unrolled loop: sides that went on with the next round meet here. Gives
/// whether the loop is left.
bool leaves_loop(Interpreter& interpreter, size_t forks, Completion completion) {
  if (completion != Completion::normal && completion != Completion::continue_) return true;
  close_forks_that(interpreter, forks, Completion::continue_);
  return false;
}

/// Behind a loop whose rounds or `else` ended so: sides that left it by `break` meet here. Only
/// those that return may stay open, since `break` and `continue` mean another loop from now on.
void end_loop(Interpreter& interpreter, size_t forks, Completion completion) {
  if (completion == Completion::normal) close_forks_that(interpreter, forks, Completion::break_);
  const auto& open = interpreter.frame().forks;
  for (size_t i = forks; i < open.size(); ++i)
    if (open[i]->other_completion() != Completion::return_)
      throw CannotMerge{open[i]->test(), "only one side leaves the loop"};
}

Completion end_rounds(Interpreter& interpreter, size_t forks, Completion completion) {
  if (completion == Completion::break_) completion = Completion::normal;
  end_loop(interpreter, forks, completion);
  return completion;
}

Completion execute_else(Interpreter& interpreter, size_t forks, const syntax::Body& body) {
  Completion completion = execute(interpreter, body);
  end_loop(interpreter, forks, completion);
  return completion;
}

}  // namespace

Completion execute_for(Interpreter& interpreter, const syntax::For& loop) {
  Value iterable = evaluate(interpreter, *loop.iter);
  interpreter.at(loop);
  std::shared_ptr<Iterator> iterator = iterate(interpreter, iterable);
  size_t forks = interpreter.frame().forks.size();
  int64_t trips = 0;
  while (true) {
    interpreter.at(loop);
    Value element = iterator->next();
    if (element == nullptr) break;
    if (++trips > Interpreter::kMostTrips)
      interpreter.refuse(ReasonCode::limit, cat("a loop of more than ", Interpreter::kMostTrips,
                                                " rounds would be unrolled"));
    assign(interpreter, *loop.target, element);
    Completion completion = execute(interpreter, loop.body);
    if (leaves_loop(interpreter, forks, completion))
      return end_rounds(interpreter, forks, completion);
  }
  interpreter.at(loop);
  interpreter.mark(speculate::LineMark::Kind::constant, cat("unrolled ", trips, " times"));
  return execute_else(interpreter, forks, loop.orelse);
}

namespace {

/// A loop's test goes both ways in every run: what only the run knows can't be followed.
bool loop_test(Interpreter& interpreter, const syntax::While& loop) {
  Value value = evaluate(interpreter, *loop.test);
  interpreter.at(*loop.test);
  const auto* number = as<Number>(value);
  if (as<Tensor>(value) != nullptr || (number != nullptr && !number->example))
    interpreter.refuse(ReasonCode::dynamic_control, "the test of a while loop");
  return truth(interpreter, value, loop.test->fact);
}

}  // namespace

Completion execute_while(Interpreter& interpreter, const syntax::While& loop) {
  size_t forks = interpreter.frame().forks.size();
  for (int64_t trips = 0; loop_test(interpreter, loop); ++trips) {
    if (trips >= Interpreter::kMostTrips)
      interpreter.refuse(ReasonCode::limit, cat("a loop of more than ", Interpreter::kMostTrips,
                                                " rounds would be unrolled"));
    Completion completion = execute(interpreter, loop.body);
    if (leaves_loop(interpreter, forks, completion))
      return end_rounds(interpreter, forks, completion);
  }
  return execute_else(interpreter, forks, loop.orelse);
}

namespace {

/// Executes statements that all sides of a branch in them have to leave in the same way: something
/// is done behind them.
Completion execute_closed(Interpreter& interpreter, const syntax::Body& body) {
  size_t forks = interpreter.frame().forks.size();
  Completion completion = execute(interpreter, body);
  close_forks(interpreter, forks, completion);
  return completion;
}

/// The items from `index` on, then the body: each manager's exit runs after what it surrounds.
Completion execute_with_items(Interpreter& interpreter, const syntax::With& with, size_t index) {
  if (index == with.items.size()) return execute_closed(interpreter, with.body);
  const syntax::WithItem& item = with.items[index];
  Value manager = evaluate(interpreter, *item.context_expr);
  interpreter.at(with);
  if (auto* context = as<ContextManager>(manager)) {
    Value entered = context->enter(interpreter);
    if (item.optional_vars != nullptr) assign(interpreter, *item.optional_vars, entered);
    Completion completion = execute_with_items(interpreter, with, index + 1);
    context->exit(interpreter);
    return completion;
  }
  Value exit = special_method(interpreter, manager, "__exit__");
  Value enter = special_method(interpreter, manager, "__enter__");
  if (enter == nullptr || exit == nullptr)
    interpreter.refuse(ReasonCode::unknown_callable, "a context manager");
  Value entered = call(interpreter, enter, {});
  if (item.optional_vars != nullptr) assign(interpreter, *item.optional_vars, entered);
  Completion completion = execute_with_items(interpreter, with, index + 1);
  interpreter.at(with);
  CallArguments nothing;
  nothing.positional = {interpreter.none(), interpreter.none(), interpreter.none()};
  call(interpreter, exit, nothing);
  return completion;
}

}  // namespace

Completion execute_with(Interpreter& interpreter, const syntax::With& with) {
  return execute_with_items(interpreter, with, 0);
}

/// Nothing may raise in a graph (the run is given up instead), so handlers are never entered.
Completion execute_try(Interpreter& interpreter, const syntax::Try& statement) {
  Completion completion = execute_closed(interpreter, statement.body);
  if (completion == Completion::normal) completion = execute_closed(interpreter, statement.orelse);
  Completion last = execute(interpreter, statement.finalbody);
  return last == Completion::normal ? completion : last;
}

}  // namespace janus::frontend
