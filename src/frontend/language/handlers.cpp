// `try`, `raise` and `assert`: what is done where a block of statements ends, on each of its sides.
// An exception is handled where the interpreter comes to a handler of its class.
#include "frontend/language/handlers.h"

#include <algorithm>

#include "frontend/control/branches.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/language/conditions.h"
#include "frontend/language/evaluation.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/instances.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

using python::Object;

/// Refuses if no outer handler takes it.
Completion propagate(const Frames& frames) {
  PyObject* const type = class_of_exception(frames.frame().raised);
  if (!is_awaited(frames, type))
    frames.refuse(ReasonCode::would_raise,
                  cat("a raised ", reinterpret_cast<PyTypeObject*>(type)->tp_name));
  return Completion::raise_;
}

// --- raise --------------------------------------------------------------------------------------

namespace {

/// The exception whose handler is being run.
Value handled_exception(const Frames& frames) {
  for (const Frame* frame = &frames.frame(); frame != nullptr; frame = frame->caller)
    if (!frame->handled.empty()) return frame->handled.back();
  frames.refuse(ReasonCode::would_raise, "a raise statement");
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

bool raises_again(const syntax::ExceptHandler& handler) {
  const auto* last = syntax::try_as<syntax::Raise>(handler.body.back());
  return last != nullptr && last->exc == nullptr;
}

bool finishes_errors(const Frames& frames, const syntax::Try& statement) {
  return !statement.finalbody.empty() && !frames.frame().is_library;
}

}  // namespace

bool sees_errors(const Frames& frames, const syntax::Try& statement) {
  const bool is_library = frames.frame().is_library;
  const bool handles = std::ranges::any_of(statement.handlers, [&](const auto* handler) {
    return !is_library || !raises_again(*handler);
  });
  return handles || finishes_errors(frames, statement);
}

bool has_handler(const syntax::Body& body,
                 const std::function<bool(const syntax::ExceptHandler&)>& is_such) {
  const auto within = [&](const syntax::Body& part) { return has_handler(part, is_such); };
  const auto either = [&](const auto& node) { return within(node.body) || within(node.orelse); };
  const auto of_try = [&](const auto& node) {
    return either(node) || within(node.finalbody) ||
           std::ranges::any_of(node.handlers, [&](const syntax::ExceptHandler* handler) {
             return is_such(*handler) || within(handler->body);
           });
  };
  return std::ranges::any_of(body, [&](const syntax::Statement* statement) {
    using syntax::try_as;
    if (const auto* node = try_as<syntax::Try>(statement)) return of_try(*node);
    if (const auto* node = try_as<syntax::TryStar>(statement)) return of_try(*node);
    if (const auto* node = try_as<syntax::If>(statement)) return either(*node);
    if (const auto* node = try_as<syntax::For>(statement)) return either(*node);
    if (const auto* node = try_as<syntax::While>(statement)) return either(*node);
    if (const auto* node = try_as<syntax::With>(statement)) return within(node->body);
    const auto* match = try_as<syntax::Match>(statement);
    return match != nullptr && std::ranges::any_of(match->cases, within, &syntax::MatchCase::body);
  });
}

Completion execute_try(Interpreter& interpreter, const syntax::Try& statement) {
  const size_t forks = interpreter.frame().forks.size();
  Completion completion = Completion::normal;
  {
    const SeesErrors sees(interpreter, sees_errors(interpreter, statement));
    const Within within(interpreter, !statement.handlers.empty());
    completion = execute(interpreter, statement.body);
  }
  return end_try(interpreter, statement, forks, completion);
}

Completion end_try(Interpreter& interpreter, const syntax::Try& statement, size_t forks,
                   Completion completion) {
  const auto goes_on = [&](Completion ended) {
    return ended == Completion::raise_ ? !statement.handlers.empty()
                                       : ended == Completion::normal && !statement.orelse.empty();
  };
  completion = on_each_side(interpreter, forks, completion, goes_on, [&](Completion ended) {
    const SeesErrors sees(interpreter, finishes_errors(interpreter, statement));
    return ended == Completion::raise_ ? handle(interpreter, statement)
                                       : execute(interpreter, statement.orelse);
  });
  if (statement.finalbody.empty()) return completion;
  const auto always = [](Completion) { return true; };
  return on_each_side(interpreter, forks, completion, always, [&](Completion ended) {
    return run_last(interpreter, statement.finalbody, ended);
  });
}

}  // namespace janus::frontend
