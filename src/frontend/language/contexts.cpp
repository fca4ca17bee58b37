// What the interpreter knows as a context manager is entered and left by its own functions, which
// become an `__exit__` here, so that there is one way out for all.
#include "frontend/language/contexts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "frontend/control/branches.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/language/assignment.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/handlers.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/instances.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

namespace {

/// torch.no_grad and the like: the interpreter keeps their state. On a further side of a branch
/// that leaves them, the state is what it was before.
Entered enter_mode(Interpreter& interpreter, const std::shared_ptr<ContextManager>& context) {
  const Modes before = interpreter.modes;
  Entered entered;
  entered.value = context->enter(interpreter);
  auto is_left = std::make_shared<bool>(false);
  entered.exit = std::make_shared<Native>(
      "__exit__", [context, before, is_left](Interpreter& inner, const CallArguments&) -> Value {
        if (!std::exchange(*is_left, true)) {
          context->exit(inner);
        } else {
          inner.modes = before;
        }
        return inner.boolean(false);
      });
  return entered;
}

Entered enter_generator(Interpreter& interpreter, const std::shared_ptr<ContextManager>& context) {
  Entered entered;
  entered.value = context->enter(interpreter);
  entered.exit = std::make_shared<Native>(
      "__exit__", [context](Interpreter& inner, const CallArguments& arguments) {
        return context->leave(inner, arguments);
      });
  entered.handles = context->handles;
  entered.sees_errors = context->sees_errors;
  entered.is_left_once = true;
  return entered;
}

/// Whether the method would do something where an error leaves the context:
/// contextlib.nullcontext's does nothing, and torch's own put back what was before, as a run that
/// fails leaves it.
bool sees_errors(Interpreter& interpreter, const Value& method) {
  const auto* bound = as<Method>(method);
  const auto* known = as<Known>(bound == nullptr ? method : bound->function);
  if (known == nullptr || !PyFunction_Check(known->object.get())) return true;
  const auto code = interpreter.code_of(known->object.get(), known->source);
  if (Frames::is_library(*code->tree)) return false;
  return std::ranges::any_of(code->tree->body, [](const syntax::Statement* each) {
    return each->kind != syntax::StatementKind::Pass;
  });
}

Entered enter_own(Interpreter& interpreter, const Value& manager) {
  Entered entered;
  entered.exit = special_method(interpreter, manager, "__exit__");
  const Value enter = special_method(interpreter, manager, "__enter__");
  if (enter == nullptr || entered.exit == nullptr)
    interpreter.refuse(ReasonCode::unknown_callable, "a context manager");
  entered.value = call(interpreter, enter, {});
  entered.handles = true;
  entered.sees_errors = sees_errors(interpreter, entered.exit);
  return entered;
}

/// The arguments of `__exit__`; the traceback is not known.
CallArguments leaving_arguments(Interpreter& interpreter, Completion completion) {
  if (completion != Completion::raise_) {
    const Value none = interpreter.none();
    return {.positional = {none, none, none}, .keywords = {}};
  }
  const Value exception = interpreter.frame().raised;
  const Value traceback = std::make_shared<Native>(
      "a traceback", [](Interpreter& inner, const CallArguments&) -> Value {
        inner.refuse(ReasonCode::would_raise, "TypeError: a traceback is called");
      });
  return {.positional = {type_of(interpreter, exception), exception, traceback}, .keywords = {}};
}

/// Calls `__exit__` after the body ended with `completion`.
Completion call_exit(Interpreter& interpreter, const syntax::With& with, const Value& exit,
                     Completion ended) {
  interpreter.at(with);
  Frame& frame = interpreter.frame();
  const Value returned = frame.returned, exception = frame.raised;
  try {
    const Value answer = call(interpreter, exit, leaving_arguments(interpreter, ended));
    frame.returned = returned;
    frame.raised = exception;
    if (ended != Completion::raise_) return ended;
    return truth(interpreter, answer, -1) ? Completion::normal : propagate(interpreter);
  } catch (const Raised& raised) {
    frame.raised = raised.exception;
    return propagate(interpreter);
  }
}

/// The items from `index` on, then the body: each manager's exit runs after what it surrounds.
Completion execute_with_items(Interpreter& interpreter, const syntax::With& with, size_t index) {
  if (index == with.items.size()) return execute(interpreter, with.body);
  const Value manager = evaluate(interpreter, *with.items[index].context_expr);
  interpreter.at(with);
  const Entered entered = enter_context(interpreter, manager);
  Completion completion = Completion::normal;
  try {
    const Within within(interpreter, entered.handles);
    const SeesErrors sees(interpreter, entered.sees_errors);
    const syntax::Expression* target = with.items[index].optional_vars;
    if (target != nullptr) assign(interpreter, *target, entered.value);
    completion = execute_with_items(interpreter, with, index + 1);
  } catch (const Raised& raised) {  // in the next item, or in the target
    interpreter.frame().raised = raised.exception;
    completion = Completion::raise_;
  }
  return leave_context(interpreter, with, entered, completion);
}

}  // namespace

Entered enter_context(Interpreter& interpreter, const Value& manager) {
  auto context = shared_as<ContextManager>(manager);
  Entered entered = context == nullptr ? enter_own(interpreter, manager)
                    : context->leave   ? enter_generator(interpreter, context)
                                       : enter_mode(interpreter, context);
  // A side on which that raised is none that is left here.
  entered.forks = interpreter.frame().forks.size();
  return entered;
}

Completion leave_context(Interpreter& interpreter, const syntax::With& with, const Entered& entered,
                         Completion completion) {
  if (entered.is_left_once) {
    close_forks(interpreter, entered.forks, completion);
    return call_exit(interpreter, with, entered.exit, completion);
  }
  const auto always = [](Completion) { return true; };
  return on_each_side(interpreter, entered.forks, completion, always, [&](Completion ended) {
    return call_exit(interpreter, with, entered.exit, ended);
  });
}

Completion execute_with(Interpreter& interpreter, const syntax::With& with) {
  return execute_with_items(interpreter, with, 0);
}

}  // namespace janus::frontend
