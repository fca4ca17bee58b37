// Loops over known things are unrolled, tests that the graph computes are followed and guarded;
// `with` runs the context managers' own code.
#include "frontend/attributes.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/expressions.h"
#include "frontend/statements.h"

namespace janus::frontend {

Completion execute_for(Interpreter& interpreter, const syntax::For& loop) {
  Value iterable = evaluate(interpreter, *loop.iter);
  interpreter.at(loop);
  std::shared_ptr<Iterator> iterator = iterate(interpreter, iterable);
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
    if (completion == Completion::break_) return Completion::normal;
    if (completion == Completion::return_) return completion;
  }
  interpreter.at(loop);
  interpreter.mark(speculate::LineMark::Kind::constant, cat("unrolled ", trips, " times"));
  return execute(interpreter, loop.orelse);
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
  for (int64_t trips = 0; loop_test(interpreter, loop); ++trips) {
    if (trips >= Interpreter::kMostTrips)
      interpreter.refuse(ReasonCode::limit, cat("a loop of more than ", Interpreter::kMostTrips,
                                                " rounds would be unrolled"));
    Completion completion = execute(interpreter, loop.body);
    if (completion == Completion::break_) return Completion::normal;
    if (completion == Completion::return_) return completion;
  }
  return execute(interpreter, loop.orelse);
}

namespace {

/// The items from `index` on, then the body: each manager's exit runs after what it surrounds.
Completion execute_with_items(Interpreter& interpreter, const syntax::With& with, size_t index) {
  if (index == with.items.size()) return execute(interpreter, with.body);
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
  Completion completion = execute(interpreter, statement.body);
  if (completion == Completion::normal) completion = execute(interpreter, statement.orelse);
  Completion last = execute(interpreter, statement.finalbody);
  return last == Completion::normal ? completion : last;
}

}  // namespace janus::frontend
