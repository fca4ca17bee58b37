// `try`, `with`, `raise` and `assert`: what is done where a block of statements ends, on each of
// its sides. An exception is handled where the interpreter comes to a handler of its class.
#include "frontend/language/handlers.h"

#include "frontend/control/branches.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/language/assignment.h"
#include "frontend/language/conditions.h"
#include "frontend/language/evaluation.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/instances.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

using python::Object;

namespace {

bool always(Completion) { return true; }

/// Propagates the exception; refuses if no outer handler takes it.
Completion propagate(Interpreter& interpreter) {
  PyObject* const type = class_of_exception(interpreter.frame().raised);
  if (!is_awaited(interpreter, type))
    interpreter.refuse(ReasonCode::would_raise,
                       cat("a raised ", reinterpret_cast<PyTypeObject*>(type)->tp_name));
  return Completion::raise_;
}

// --- with ---------------------------------------------------------------------------------------

Completion execute_with_items(Interpreter& interpreter, const syntax::With& with, size_t index);

/// Runs the inside of a `with` item and says how it ends, also where an expression raises: in the
/// next item, or in the target of `as`.
Completion execute_inside(Interpreter& interpreter, const syntax::With& with, size_t index,
                          const Value& entered) {
  const syntax::Expression* target = with.items[index].optional_vars;
  try {
    if (target != nullptr) assign(interpreter, *target, entered);
    return execute_with_items(interpreter, with, index + 1);
  } catch (const Raised& raised) {
    interpreter.frame().raised = raised.exception;
    return Completion::raise_;
  }
}

/// torch.no_grad and the like: the interpreter keeps their state.
Completion execute_mode(Interpreter& interpreter, const syntax::With& with, size_t index,
                        ContextManager& context) {
  const size_t forks = interpreter.frame().forks.size();
  const Modes before = interpreter.modes;
  const Value entered = context.enter(interpreter);
  const Completion completion = execute_inside(interpreter, with, index, entered);
  bool is_left = false;
  return on_each_side(interpreter, forks, completion, always, [&](Completion ended) {
    if (!std::exchange(is_left, true)) {
      context.exit(interpreter);
    } else {
      interpreter.modes = before;
    }
    return ended;
  });
}

/// A context manager that is a generator: its second half runs after the body of the `with`.
Completion execute_around(Interpreter& interpreter, const syntax::With& with, size_t index,
                          ContextManager& context) {
  const syntax::Expression* target = with.items[index].optional_vars;
  const size_t forks = interpreter.frame().forks.size();
  Completion completion = Completion::normal;
  context.around(interpreter, [&](const Value& entered) {
    if (target != nullptr) assign(interpreter, *target, entered);
    completion = execute_with_items(interpreter, with, index + 1);
    close_forks(interpreter, forks, completion);
  });
  return completion;
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
Completion leave_manager(Interpreter& interpreter, const syntax::With& with, const Value& exit,
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

Completion execute_manager(Interpreter& interpreter, const syntax::With& with, size_t index,
                           const Value& manager) {
  Value exit = special_method(interpreter, manager, "__exit__");
  Value enter = special_method(interpreter, manager, "__enter__");
  if (enter == nullptr || exit == nullptr)
    interpreter.refuse(ReasonCode::unknown_callable, "a context manager");
  const Value entered = call(interpreter, enter, {});
  // A side on which that raised is none that is left here.
  const size_t forks = interpreter.frame().forks.size();
  Completion completion = Completion::normal;
  {
    const Awaiting awaiting(interpreter, Awaiting::What::exceptions);
    completion = execute_inside(interpreter, with, index, entered);
  }
  return on_each_side(interpreter, forks, completion, always, [&](Completion ended) {
    return leave_manager(interpreter, with, exit, ended);
  });
}

/// The items from `index` on, then the body: each manager's exit runs after what it surrounds.
Completion execute_with_items(Interpreter& interpreter, const syntax::With& with, size_t index) {
  if (index == with.items.size()) return execute(interpreter, with.body);
  Value manager = evaluate(interpreter, *with.items[index].context_expr);
  interpreter.at(with);
  auto* context = as<ContextManager>(manager);
  if (context == nullptr) return execute_manager(interpreter, with, index, manager);
  return context->around ? execute_around(interpreter, with, index, *context)
                         : execute_mode(interpreter, with, index, *context);
}

}  // namespace

Completion execute_with(Interpreter& interpreter, const syntax::With& with) {
  return execute_with_items(interpreter, with, 0);
}

// --- raise --------------------------------------------------------------------------------------

namespace {

/// The exception whose handler is being run.
Value handled_exception(const Interpreter& interpreter) {
  for (const Frame* frame = &interpreter.frame(); frame != nullptr; frame = frame->caller)
    if (!frame->handled.empty()) return frame->handled.back();
  interpreter.refuse(ReasonCode::would_raise, "a raise statement");
}

/// The exception that `raise` of an exception or of an exception class raises.
Value raised_exception(Interpreter& interpreter, const Value& value) {
  if (is_exception(value)) return value;
  const auto* known = as<Known>(value);
  if (known != nullptr && PyExceptionClass_Check(known->object.get())) {
    interpreter.assume_identity(*known);
    if (Value made = make_exception(interpreter, *known, {})) return made;
  }
  interpreter.refuse(ReasonCode::would_raise, "a raise statement");
}

}  // namespace

Completion execute_raise(Interpreter& interpreter, const syntax::Raise& statement) {
  if (!is_awaited(interpreter)) interpreter.refuse(ReasonCode::would_raise, "a raise statement");
  Value exception = statement.exc == nullptr
                        ? handled_exception(interpreter)
                        : raised_exception(interpreter, evaluate(interpreter, *statement.exc));
  if (statement.cause != nullptr) {
    const Value cause = evaluate(interpreter, *statement.cause);
    if (!is_none(cause)) raised_exception(interpreter, cause);
  }
  interpreter.frame().raised = std::move(exception);
  return propagate(interpreter);
}

Completion execute_assert(Interpreter& interpreter, const syntax::Assert& statement) {
  int fact = statement.fact;
  const Truth truth = evaluate_truth(interpreter, *statement.test, fact);
  const auto fail = [&] {
    if (!is_awaited(interpreter, PyExc_AssertionError))
      interpreter.refuse(ReasonCode::would_raise, "AssertionError");
    CallArguments arguments;
    if (statement.msg != nullptr) arguments.positional = {evaluate(interpreter, *statement.msg)};
    interpreter.frame().raised = make_exception(
        interpreter, Known(Object::borrow(PyExc_AssertionError), nullptr), arguments);
    return Completion::raise_;
  };
  const auto pass = [] { return Completion::normal; };
  if (!truth.known && is_awaited(interpreter, PyExc_AssertionError) &&
      takes_both(interpreter, fact))
    return choose_statements(interpreter, truth, fact, pass, fail);
  const bool holds =
      truth.known ? *truth.known : interpreter.follow(truth.flag, truth.example, fact);
  return holds ? pass() : fail();
}

// --- try ----------------------------------------------------------------------------------------

namespace {

/// Whether the exception is of the class, or of one of the classes.
bool is_of(Interpreter& interpreter, const Value& exception, const Value& classes) {
  if (const auto* known = as<Known>(classes);
      known != nullptr && PyExceptionClass_Check(known->object.get())) {
    interpreter.assume_identity(*known);
    return PyErr_GivenExceptionMatches(class_of_exception(exception), known->object.get()) != 0;
  }
  if (class_of(classes) != &PyTuple_Type)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: a class of exceptions");
  for (const Value& each : elements_of(interpreter, classes))
    if (is_of(interpreter, exception, each)) return true;
  return false;
}

Completion run_handler(Interpreter& interpreter, const syntax::ExceptHandler& handler,
                       const Value& exception) {
  interpreter.frame().handled.push_back(exception);
  if (!handler.name.empty()) interpreter.write_name(handler.name, exception);
  const Completion completion = execute(interpreter, handler.body);
  interpreter.frame().handled.pop_back();
  if (!handler.name.empty()) interpreter.write_name(handler.name, nullptr);
  return completion;
}

/// Runs the handler that takes the exception of the body.
Completion handle(Interpreter& interpreter, const syntax::Try& statement) {
  const Value exception = interpreter.frame().raised;
  try {
    for (const syntax::ExceptHandler* handler : statement.handlers) {
      if (handler->type != nullptr) {
        interpreter.at(*handler);
        if (!is_of(interpreter, exception, evaluate(interpreter, *handler->type))) continue;
      }
      return run_handler(interpreter, *handler, exception);
    }
  } catch (const Raised& raised) {  // by an expression for the class
    interpreter.frame().raised = raised.exception;
  }
  return propagate(interpreter);
}

/// Runs `finally`: the block ends as it ended before, unless `finally` leaves it.
Completion run_last(Interpreter& interpreter, const syntax::Body& body, Completion before) {
  Frame& frame = interpreter.frame();
  const Value returned = frame.returned, raised = frame.raised;
  const Completion last = execute(interpreter, body);
  if (last != Completion::normal) return last;
  frame.returned = returned;
  frame.raised = raised;
  return before == Completion::raise_ ? propagate(interpreter) : before;
}

}  // namespace

Completion execute_try(Interpreter& interpreter, const syntax::Try& statement) {
  const size_t forks = interpreter.frame().forks.size();
  Completion completion = Completion::normal;
  if (statement.handlers.empty()) {
    completion = execute(interpreter, statement.body);
  } else {
    const Awaiting awaiting(interpreter, Awaiting::What::exceptions);
    completion = execute(interpreter, statement.body);
  }
  const auto goes_on = [&](Completion ended) {
    return ended == Completion::raise_ ? !statement.handlers.empty()
                                       : ended == Completion::normal && !statement.orelse.empty();
  };
  completion = on_each_side(interpreter, forks, completion, goes_on, [&](Completion ended) {
    return ended == Completion::raise_ ? handle(interpreter, statement)
                                       : execute(interpreter, statement.orelse);
  });
  if (statement.finalbody.empty()) return completion;
  return on_each_side(interpreter, forks, completion, always, [&](Completion ended) {
    return run_last(interpreter, statement.finalbody, ended);
  });
}

}  // namespace janus::frontend
