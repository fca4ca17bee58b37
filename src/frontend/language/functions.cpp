// Each call makes a frame and interprets the body in it. Recursive calls are handed over to the
// room of recursion, which may make a function of the graph.
#include "frontend/language/functions.h"

#include "frontend/control/branches.h"
#include "frontend/control/outcomes.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/recursion_state.h"
#include "frontend/language/arguments.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/run_ahead.h"
#include "frontend/recursion/recursion.h"
#include "speculate/hooks.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The defaults of a function that exists before the call, as they are now.
Defaults defaults_of(Interpreter& interpreter, const Code& code) {
  Defaults defaults;
  PyObject* function = code.function.get();
  PyObject* positional = PyFunction_GetDefaults(function);
  if (positional != nullptr && PyTuple_Check(positional)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positional); ++i)
      defaults.positional.push_back(interpreter.wrap(
          PyTuple_GET_ITEM(positional, i),
          interpreter.sources().step(Source::Kind::default_value, code.function_source, {}, i)));
  }
  defaults.keyword = [&interpreter, &code](const std::string& name) -> Value {
    PyObject* dict = PyFunction_GetKwDefaults(code.function.get());
    if (dict == nullptr || !PyDict_Check(dict)) return nullptr;
    Object key = as<Known>(interpreter.string(name))->object;
    PyObject* value = PyDict_GetItemWithError(dict, key.get());
    if (value == nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    return interpreter.wrap(value, interpreter.sources().step(Source::Kind::keyword_default,
                                                              code.function_source, key));
  };
  return defaults;
}

Value run_body(Interpreter& interpreter, const syntax::Body* body,
               const syntax::Expression* expression) {
  Frame& frame = interpreter.frame();
  Completion completion = Completion::return_;
  try {
    if (expression != nullptr)
      frame.returned = evaluate(interpreter, *expression);
    else
      completion = execute(interpreter, *body);
  } catch (const UnknownResult&) {
    if (expression != nullptr || !return_instead(interpreter)) throw;
  } catch (const Raised& raised) {  // in an expression
    frame.raised = raised.exception;
    completion = Completion::raise_;
  }
  // Sides of branches that are still open are merged where the function returns.
  if (completion == Completion::normal) {
    frame.returned = interpreter.none();
    completion = Completion::return_;
  }
  return outcome_of(interpreter, completion);
}

void remember_arguments(Frame& frame, const syntax::Tree& tree, const syntax::Arguments& parameters,
                        const Variables& variables) {
  const syntax::Argument* first = !parameters.posonlyargs.empty() ? parameters.posonlyargs.front()
                                  : !parameters.args.empty()      ? parameters.args.front()
                                                                  : nullptr;
  if (first == nullptr) return;
  auto value = variables.values.find(tree.mangle(first->arg));
  if (value != variables.values.end()) frame.arguments.push_back(value->second);
}

Value run_generator(Interpreter& interpreter, Frame& frame, const syntax::Body& body) {
  if (interpreter.at_next_generator)  // its consumer runs it, and not ahead
    return std::exchange(interpreter.at_next_generator, nullptr)(frame, body);
  if (interpreter.at_entry()) interpreter.refuse(ReasonCode::generator, frame.name);
  return run_ahead(interpreter, frame, body);
}

}  // namespace

Value run_generator_body(Interpreter& interpreter, Frame& frame, const syntax::Body& body) {
  return interpreter.run_frame(frame, [&] { return run_body(interpreter, &body, nullptr); });
}

Value run_code(Interpreter& interpreter, const std::shared_ptr<const Code>& code,
               const CallArguments& arguments) {
  const syntax::Tree& tree = *code->tree;
  if (tree.scope->has_await ||
      (tree.function != nullptr && tree.function->kind == syntax::StatementKind::AsyncFunctionDef))
    interpreter.refuse(ReasonCode::generator, tree.name);
  auto variables = std::make_shared<Variables>();
  variables->scope = tree.scope;
  bind_arguments(interpreter, {tree, *tree.arguments, tree.name}, arguments,
                 defaults_of(interpreter, *code), *variables);
  auto run = [&](const std::shared_ptr<Variables>& bound) {
    Frame frame = interpreter.make_frame(code, bound, tree.name);
    frame.environment = code->function.get();
    remember_arguments(frame, tree, *tree.arguments, *bound);
    if (tree.scope->has_yield) return run_generator(interpreter, frame, tree.body);
    const Value result = interpreter.run_frame(frame, [&] {
      return run_body(interpreter, &tree.body,
                      tree.lambda != nullptr ? tree.lambda->body : nullptr);
    });
    return value_where_returned(interpreter, result);
  };
  if (tree.scope->has_yield || interpreter.is_library(tree)) return run(variables);
  return recursion_of(interpreter)
      .invoke({tree.scope, code->function.get(), code->facts_key, tree.name, std::move(variables),
               run});
}

Value inline_function(Interpreter& interpreter, PyObject* function, const Source* source,
                      const CallArguments& arguments) {
  std::shared_ptr<const Code> code = interpreter.code_of(function, source);
  interpreter.mark(speculate::LineMark::Kind::constant, "inlined " + code->tree->name);
  return run_code(interpreter, code, arguments);
}

Value make_closure(Interpreter& interpreter, const std::string& name,
                   const syntax::Arguments& arguments, const syntax::Scope* scope,
                   const syntax::Body* body, const syntax::Expression* expression) {
  auto closure = std::make_shared<Closure>();
  closure->code = interpreter.frame().code;
  closure->variables = interpreter.frame().variables;
  closure->scope = scope;
  closure->arguments = &arguments;
  closure->body = body;
  closure->expression = expression;
  closure->name = name;
  for (const syntax::Expression* value : arguments.defaults)
    closure->defaults.push_back(evaluate(interpreter, *value));
  for (size_t i = 0; i < arguments.kwonlyargs.size(); ++i)
    if (arguments.kw_defaults[i] != nullptr)
      closure->keyword_defaults[interpreter.mangled(arguments.kwonlyargs[i]->arg)] =
          evaluate(interpreter, *arguments.kw_defaults[i]);
  return closure;
}

Value call_closure(Interpreter& interpreter, const Closure& closure,
                   const CallArguments& arguments) {
  if (closure.scope->has_await) interpreter.refuse(ReasonCode::generator, closure.name);
  auto variables = std::make_shared<Variables>();
  variables->scope = closure.scope;
  variables->parent = closure.variables;
  Defaults defaults;
  defaults.positional = closure.defaults;
  defaults.keyword = [&closure](const std::string& name) -> Value {
    auto found = closure.keyword_defaults.find(name);
    return found == closure.keyword_defaults.end() ? nullptr : found->second;
  };
  bind_arguments(interpreter, {*closure.code->tree, *closure.arguments, closure.name}, arguments,
                 defaults, *variables);
  const bool is_generator = closure.scope->has_yield && closure.body != nullptr;
  auto run = [&](const std::shared_ptr<Variables>& bound) {
    Frame frame = interpreter.make_frame(closure.code, bound, closure.name);
    frame.environment = closure.variables.get();
    remember_arguments(frame, *closure.code->tree, *closure.arguments, *bound);
    if (is_generator) return run_generator(interpreter, frame, *closure.body);
    const Value result = interpreter.run_frame(
        frame, [&] { return run_body(interpreter, closure.body, closure.expression); });
    return value_where_returned(interpreter, result);
  };
  if (is_generator || interpreter.is_library(*closure.code->tree)) return run(variables);
  return recursion_of(interpreter)
      .invoke({closure.scope, closure.variables.get(), closure.code->facts_key, closure.name,
               std::move(variables), run});
}

}  // namespace janus::frontend
