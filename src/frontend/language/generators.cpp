// The consumer leaves in `at_next_generator` what it does with the generator's frame and body: it
// runs all of it, with something to do at each `yield`, or divides it at its `yield`.
#include "frontend/language/generators.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "frontend/control/branches.h"
#include "frontend/control/outcomes.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/language/arguments.h"
#include "frontend/language/assignment.h"
#include "frontend/language/conditions.h"
#include "frontend/language/contexts.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/functions.h"
#include "frontend/language/handlers.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/instances.h"
#include "frontend/objects/protocol.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"

namespace janus::frontend {

namespace {

bool is_generator_function(const Value& value) {
  if (const auto* method = as<Method>(value)) return is_generator_function(method->function);
  if (const auto* closure = as<Closure>(value)) return closure->scope->has_yield;
  const auto* known = as<Known>(value);
  PyObject* function = known == nullptr ? nullptr : known->object.get();
  if (function != nullptr && PyMethod_Check(function)) function = PyMethod_GET_FUNCTION(function);
  if (function == nullptr || !PyFunction_Check(function)) return false;
  const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  return (code->co_flags & CO_GENERATOR) != 0;
}

/// Whether the expression may be a generator function: it is a variable, or a method of a
/// variable's value. Such an expression may be evaluated twice.
bool may_be_generator(Interpreter& interpreter, const syntax::Expression& function) {
  if (function.kind == syntax::ExpressionKind::Name) return true;
  const auto* attribute = syntax::try_as<syntax::Attribute>(&function);
  if (attribute == nullptr || attribute->value->kind != syntax::ExpressionKind::Name) return false;
  const Value object = evaluate(interpreter, *attribute->value);
  if (as<Known>(object) == nullptr && as<Instance>(object) == nullptr) return false;
  const python::Object name = python::string(interpreter.mangled(attribute->attr));
  PyObject* const found = _PyType_Lookup(class_of(object), name.get());
  return found != nullptr && PyFunction_Check(found);
}

using Consumer = std::function<void(const Value&)>;

/// Runs the generator that the function makes, and does `body` in the frame at hand at each
/// `yield`.
Value consume(Interpreter& interpreter, const Value& function, const CallArguments& arguments,
              const Consumer& body) {
  Frame& frame = interpreter.frame();
  const Awaiting nothing(interpreter, Awaiting::What::nothing);
  interpreter.at_next_generator = [&](Frame& generator, const syntax::Body& statements) {
    generator.at_yield = [&](const Value& value) {
      interpreter.in_frame(frame, [&] { body(value); });
    };
    return run_generator_body(interpreter, generator, statements);
  };
  return value_where_returned(interpreter, call(interpreter, function, arguments));
}

/// enumerate() of one that is consumed so.
Value for_each_numbered(Interpreter& interpreter, const syntax::Call& call, const Consumer& body) {
  if (call.func->kind != syntax::ExpressionKind::Name || call.args.size() != 1 ||
      !call.keywords.empty())
    return nullptr;
  const auto* enumerate = reinterpret_cast<PyObject*>(&PyEnum_Type);
  if (known_object(evaluate(interpreter, *call.func)) != enumerate) return nullptr;
  int64_t count = 0;
  return for_each_yielded(interpreter, *call.args[0], [&](const Value& value) {
    body(make_tuple({interpreter.integer(count++), value}));
  });
}

/// A variable whose class has a generator as its `__iter__`; null: it has another, or one that ends
/// where an exception is handled (that of collections.abc.Sequence).
Value iteration_by_generator(Interpreter& interpreter, const syntax::Expression& expression) {
  if (expression.kind != syntax::ExpressionKind::Name) return nullptr;
  const Value object = evaluate(interpreter, expression);
  if (!has_written(object, "__iter__")) return nullptr;
  Value method = special_method(interpreter, object, "__iter__");
  const auto* bound = as<Method>(method);
  PyObject* const function = bound == nullptr ? nullptr : known_object(bound->function);
  if (function == nullptr || !is_generator_function(method)) return nullptr;
  const auto code = interpreter.code_of(function, as<Known>(bound->function)->source);
  const auto any = [](const syntax::ExceptHandler&) { return true; };
  return has_handler(code->tree->body, any) ? nullptr : method;
}

}  // namespace

Value for_each_yielded(Interpreter& interpreter, const syntax::Expression& expression,
                       const Consumer& body) {
  if (const Value method = iteration_by_generator(interpreter, expression))
    return consume(interpreter, method, {}, body);
  const auto* call = syntax::try_as<syntax::Call>(&expression);
  if (call == nullptr) return nullptr;
  if (Value returned = for_each_numbered(interpreter, *call, body)) return returned;
  if (!may_be_generator(interpreter, *call->func)) return nullptr;
  const Value callee = evaluate(interpreter, *call->func);
  if (!is_generator_function(callee)) return nullptr;
  const CallArguments arguments = evaluate_arguments(interpreter, *call);
  interpreter.at(expression);
  return consume(interpreter, callee, arguments, body);
}

namespace {

/// More than any `stacklevel`: how many of contextlib's frames stand between the generator and who
/// enters or leaves it depends on whether that is a statement or a stack.
constexpr int kFramesOfContextlib = 1 << 20;

/// A generator that is run to its `yield`, and from there to its end: two halves, with what it
/// yields to between them. The `yield` stands in statements that have a beginning and an end.
class SuspendedGenerator {
 public:
  explicit SuspendedGenerator(Frame frame) : frame_(std::move(frame)) {}

  /// Gives what is yielded.
  Value begin(Interpreter& interpreter, const syntax::Body& body);
  /// Goes on where it yielded, or raises the exception there; null: none. Gives whether the
  /// generator has handled it.
  Value end(Interpreter& interpreter, const Value& exception);
  bool handles() const { return handles_; }
  bool sees_errors() const { return sees_errors_; }

 private:
  /// What is left of a statement: says how it ends where its `yield` ended so.
  using Rest = std::function<Completion(Interpreter&, Completion)>;

  Rest begin_body(Interpreter& interpreter, const syntax::Body& body);
  Rest begin_statement(Interpreter& interpreter, const syntax::Statement& statement);
  Rest begin_try(Interpreter& interpreter, const syntax::Try& statement);
  Rest begin_with(Interpreter& interpreter, const syntax::With& with, size_t index);
  Rest begin_yield(Interpreter& interpreter, const syntax::Yield& node);
  /// How the second half ends on a side: with what `__exit__` gives, or with an exception.
  Completion answer(ValueMaker& maker, bool is_handled);
  Completion let_out(Interpreter& interpreter, const Value& given);
  [[noreturn]] void refuse(const Frames& frames) const {
    frames.refuse(ReasonCode::generator, frame_.name);
  }

  Frame frame_;
  Value yielded_;
  Rest rest_;
  size_t scopes_ = 0;         ///< how many are open around it
  bool handles_ = false;      ///< the second half may handle an exception
  bool sees_errors_ = false;  ///< it does something where what it yields to fails
};

/// Whether generators treat it as their own end.
bool ends_generators(const Value& exception) {
  return PyErr_GivenExceptionMatches(class_of_exception(exception), PyExc_StopIteration) != 0;
}

bool is_same_exception(const Value& one, const Value& other) {
  return as<Instance>(one)->fields == as<Instance>(other)->fields;
}

const syntax::Yield* yield_of(const syntax::Statement& statement) {
  const auto* expression = syntax::try_as<syntax::Expr>(&statement);
  return expression == nullptr ? nullptr : syntax::try_as<syntax::Yield>(expression->value);
}

/// Whether the statement has a `yield` in a place where it can be divided. Elsewhere a `yield` is
/// refused as it is come to.
bool is_divided(const syntax::Statement& statement) {
  const auto has_one = [](const syntax::Body& body) {
    return std::ranges::any_of(body, [](const auto* inner) { return is_divided(*inner); });
  };
  if (const auto* node = syntax::try_as<syntax::Try>(&statement)) return has_one(node->body);
  if (const auto* node = syntax::try_as<syntax::With>(&statement)) return has_one(node->body);
  if (const auto* node = syntax::try_as<syntax::If>(&statement))
    return has_one(node->body) || has_one(node->orelse);
  return yield_of(statement) != nullptr;
}

Value SuspendedGenerator::begin(Interpreter& interpreter, const syntax::Body& body) {
  scopes_ = interpreter.open_scopes();
  interpreter.uncounted_of_next = kFramesOfContextlib;
  return interpreter.run_frame(frame_, [&] {
    const Awaiting nothing(interpreter, Awaiting::What::nothing);
    try {
      rest_ = begin_body(interpreter, body);
    } catch (const Raised&) {
      refuse(interpreter);
    }
    if (rest_ == nullptr)
      interpreter.refuse(ReasonCode::would_raise, "RuntimeError: generator didn't yield");
    if (interpreter.open_scopes() != scopes_)
      interpreter.refuse(ReasonCode::generator, "a context manager that yields in a branch");
    return yielded_;
  });
}

/// Null: it was run to its end, and no `yield` was come to.
SuspendedGenerator::Rest SuspendedGenerator::begin_body(Interpreter& interpreter,
                                                        const syntax::Body& body) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (!is_divided(*body[i])) {
      if (execute(interpreter, *body[i]) != Completion::normal)
        interpreter.refuse(ReasonCode::would_raise, "RuntimeError: generator didn't yield");
      continue;
    }
    Rest inner = begin_statement(interpreter, *body[i]);
    if (inner == nullptr) continue;  // an `if` whose other side yields
    return [inner = std::move(inner), &body, i](Interpreter& later, Completion ended) {
      ended = inner(later, ended);
      for (size_t next = i + 1; next < body.size() && ended == Completion::normal; ++next)
        ended = execute(later, *body[next]);
      return ended;
    };
  }
  return nullptr;
}

SuspendedGenerator::Rest SuspendedGenerator::begin_statement(Interpreter& interpreter,
                                                             const syntax::Statement& statement) {
  interpreter.at(statement);
  if (const auto* node = syntax::try_as<syntax::Try>(&statement))
    return begin_try(interpreter, *node);
  if (const auto* node = syntax::try_as<syntax::With>(&statement))
    return begin_with(interpreter, *node, 0);
  if (const auto* node = syntax::try_as<syntax::If>(&statement))
    return begin_body(interpreter,
                      test(interpreter, *node->test, node->fact) ? node->body : node->orelse);
  return begin_yield(interpreter, *yield_of(statement));
}

SuspendedGenerator::Rest SuspendedGenerator::begin_yield(Interpreter& interpreter,
                                                         const syntax::Yield& node) {
  yielded_ = node.value == nullptr ? interpreter.none() : evaluate(interpreter, *node.value);
  return [](Interpreter&, Completion ended) { return ended; };
}

SuspendedGenerator::Rest SuspendedGenerator::begin_try(Interpreter& interpreter,
                                                       const syntax::Try& statement) {
  const size_t forks = frame_.forks.size();
  handles_ = handles_ || !statement.handlers.empty();
  sees_errors_ = sees_errors_ || frontend::sees_errors(interpreter, statement);
  const Within within(interpreter, !statement.handlers.empty());
  Rest inner = begin_body(interpreter, statement.body);
  if (inner == nullptr) refuse(interpreter);
  return [inner = std::move(inner), &statement, forks](Interpreter& later, Completion ended) {
    {
      const Within within_again(later, !statement.handlers.empty());
      ended = inner(later, ended);
    }
    return end_try(later, statement, forks, ended);
  };
}

SuspendedGenerator::Rest SuspendedGenerator::begin_with(Interpreter& interpreter,
                                                        const syntax::With& with, size_t index) {
  if (index == with.items.size()) {
    Rest inner = begin_body(interpreter, with.body);
    if (inner == nullptr) refuse(interpreter);
    return inner;
  }
  const Value manager = evaluate(interpreter, *with.items[index].context_expr);
  interpreter.at(with);
  const Entered entered = enter_context(interpreter, manager);
  handles_ = handles_ || entered.handles;
  sees_errors_ = sees_errors_ || entered.sees_errors;
  const Within within(interpreter, entered.handles);
  const syntax::Expression* target = with.items[index].optional_vars;
  if (target != nullptr) assign(interpreter, *target, entered.value);
  Rest inner = begin_with(interpreter, with, index + 1);
  return [inner = std::move(inner), &with, entered](Interpreter& later, Completion ended) {
    {
      const Within within_again(later, entered.handles);
      ended = inner(later, ended);
    }
    return leave_context(later, with, entered, ended);
  };
}

Value SuspendedGenerator::end(Interpreter& interpreter, const Value& exception) {
  if (interpreter.open_scopes() != scopes_)
    interpreter.refuse(ReasonCode::generator, "a context manager that is left in a branch");
  interpreter.uncounted_of_next = kFramesOfContextlib;
  const Value ended = interpreter.run_frame(frame_, [&] {
    if (exception != nullptr) frame_.raised = exception;
    Completion completion = Completion::normal;
    if (exception == nullptr) {
      completion = rest_(interpreter, completion);
    } else {  // it may come out again, whoever waits for others
      const Awaiting given(interpreter, Awaiting::What::exceptions);
      completion = rest_(interpreter, Completion::raise_);
    }
    const auto always = [](Completion) { return true; };
    completion = on_each_side(interpreter, 0, completion, always, [&](Completion ended) {
      return ended == Completion::raise_ ? let_out(interpreter, exception)
                                         : answer(interpreter, exception != nullptr);
    });
    return outcome_of(interpreter, completion);
  });
  return value_where_returned(interpreter, ended);
}

Completion SuspendedGenerator::answer(ValueMaker& maker, bool is_handled) {
  frame_.returned = maker.boolean(is_handled);
  return Completion::return_;
}

/// An exception comes out of the generator. The one that went in is not handled: who leaves the
/// context raises it again.
Completion SuspendedGenerator::let_out(Interpreter& interpreter, const Value& given) {
  if (given != nullptr && is_same_exception(frame_.raised, given))
    return answer(interpreter, false);
  if (ends_generators(frame_.raised))
    frame_.raised = make_exception(
        interpreter, Known(python::Object::borrow(PyExc_RuntimeError), nullptr),
        {.positional = {interpreter.string("generator raised StopIteration")}, .keywords = {}});
  return propagate(interpreter);
}

}  // namespace

// --- contexts that no statement leaves -----------------------------------------------------------

namespace {

thread_local ContextsOfRun* contexts_of_run = nullptr;

}  // namespace

ContextsOfRun::ContextsOfRun() : outer_(std::exchange(contexts_of_run, this)) {}
ContextsOfRun::~ContextsOfRun() { contexts_of_run = outer_; }

void ContextsOfRun::expect_end(const Value& context) {
  if (as<ContextManager>(context)->leave) contexts_of_run->entered_.push_back(context);
}

void ContextsOfRun::end(const ContextManager* context) {
  std::erase_if(contexts_of_run->entered_,
                [&](const Value& entered) { return as<ContextManager>(entered) == context; });
}

void ContextsOfRun::check(const Frames& frames) const {
  if (!entered_.empty()) frames.refuse(ReasonCode::generator, "a context manager that is not left");
}

Value call_generator_context(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() != 3 || !is_generator_function(arguments.positional[0]))
    return nullptr;
  const Value function = arguments.positional[0];
  CallArguments given;
  given.positional = elements_of(interpreter, arguments.positional[1]);
  const Value named = opened(interpreter, arguments.positional[2]);
  const auto* keywords = as<Dictionary>(named);
  if (keywords == nullptr) return nullptr;
  for (const auto& [name, value] : keywords->items)
    given.keywords.emplace_back(text_of(name.get()), value);
  auto context = std::make_shared<ContextManager>();
  auto suspended = std::make_shared<std::unique_ptr<SuspendedGenerator>>();
  const size_t scopes = interpreter.open_scopes();
  auto is_entered = std::make_shared<bool>(false);
  context->enter = [function, given, suspended, scopes, is_entered,
                    self = context.get()](Interpreter& inner) {
    // A loop in the graph would enter it again.
    if (std::exchange(*is_entered, true) || inner.open_scopes() != scopes)
      inner.refuse(ReasonCode::generator, "a context manager that may be entered twice");
    inner.at_next_generator = [&](Frame& frame, const syntax::Body& body) {
      *suspended = std::make_unique<SuspendedGenerator>(std::move(frame));
      Value yielded = (*suspended)->begin(inner, body);
      self->handles = (*suspended)->handles();
      self->sees_errors = (*suspended)->sees_errors();
      return yielded;
    };
    const Awaiting nothing(inner, Awaiting::What::nothing);
    return call(inner, function, given);
  };
  context->leave = [suspended, self = context.get()](Interpreter& inner,
                                                     const CallArguments& leaving) -> Value {
    const bool raises = leaving.positional.size() == 3 && !is_none(leaving.positional[1]);
    const Value exception = raises ? leaving.positional[1] : nullptr;
    if (*suspended == nullptr || (raises && ends_generators(exception)))
      inner.refuse(ReasonCode::generator, "a context manager that is left in a branch");
    const std::unique_ptr<SuspendedGenerator> generator = std::move(*suspended);
    ContextsOfRun::end(self);
    return generator->end(inner, exception);
  };
  return context;
}

}  // namespace janus::frontend
