// Who is called, with which parameters: special callables by identity, operators of torch, then
// Python code, which is inlined.
#include "frontend/language/calls.h"
#include "speculate/hooks.h"

#include "frontend/control/branches.h"
#include "frontend/control/optional.h"
#include "frontend/core/exceptions.h"
#include "frontend/language/expressions.h"
#include "frontend/language/statements.h"
#include "frontend/language/strings.h"
#include "frontend/language/scripted_functions.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/cached_functions.h"
#include "frontend/objects/container_parts.h"
#include "frontend/objects/instances.h"
#include "frontend/recursion/recursion.h"
#include "frontend/tensors/callables.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/class_of.h"
#include "frontend/core/settled.h"
#include "frontend/control/outcomes.h"
#include "frontend/core/operations.h"
#include "frontend/core/recursion_state.h"
#include "frontend/control/journal.h"
#include "frontend/objects/containers.h"
#include "frontend/core/describe_callable.h"
#include "graph/op.h"
#include "ops/list.h"
#include "ops/number.h"
#include "frontend/core/object_kinds.h"

namespace janus::frontend {

using python::Object;

// --- arguments ----------------------------------------------------------------------------------

CallArguments evaluate_arguments(Interpreter& interpreter, const syntax::Call& call) {
  CallArguments arguments;
  for (const syntax::Expression* expression : call.args) {
    if (const auto* starred = syntax::try_as<syntax::Starred>(expression)) {
      for (Value& element : elements_of(interpreter, evaluate(interpreter, *starred->value)))
        arguments.positional.push_back(std::move(element));
    } else {
      arguments.positional.push_back(evaluate(interpreter, *expression));
    }
  }
  for (const syntax::Keyword* keyword : call.keywords) {
    Value value = evaluate(interpreter, *keyword->value);
    if (!keyword->arg.empty()) {
      arguments.keywords.emplace_back(interpreter.mangled(keyword->arg), std::move(value));
      continue;
    }
    Value dictionary = opened(interpreter, value);
    const auto* items = as<Dictionary>(dictionary);
    if (items == nullptr)
      interpreter.refuse(ReasonCode::unsupported_argument, "** of what is not a dict");
    for (const auto& [key, element] : items->items) {
      std::string name = text_of(key.get());
      if (name.empty() || arguments.keyword(name) != nullptr)
        interpreter.refuse(ReasonCode::would_raise, "TypeError: a keyword is given twice");
      arguments.keywords.emplace_back(name, element);
    }
  }
  return arguments;
}

namespace {

struct Defaults {
  std::vector<Value> positional;
  std::function<Value(const std::string&)> keyword;
};

class Binding {
 public:
  Binding(Interpreter& interpreter, const syntax::Tree& tree, const syntax::Arguments& parameters,
          std::string function, Variables& variables)
      : interpreter_(interpreter),
        tree_(tree),
        parameters_(parameters),
        function_(std::move(function)),
        variables_(variables) {}

  void run(const CallArguments& arguments, const Defaults& defaults) {
    collect_positional_parameters();
    bind_positional(arguments);
    bind_keywords(arguments);
    fill_defaults(defaults);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    interpreter_.refuse(ReasonCode::would_raise, cat("TypeError: ", function_, "() ", what));
  }

  void collect_positional_parameters() {
    for (const auto* parameter : parameters_.posonlyargs)
      names_.push_back(tree_.mangle(parameter->arg));
    for (const auto* parameter : parameters_.args) names_.push_back(tree_.mangle(parameter->arg));
  }

  void bind_positional(const CallArguments& arguments) {
    size_t bound = std::min(names_.size(), arguments.positional.size());
    for (size_t i = 0; i < bound; ++i) variables_.values[names_[i]] = arguments.positional[i];
    std::vector<Value> rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(bound),
                            arguments.positional.end());
    if (parameters_.vararg != nullptr)
      variables_.values[tree_.mangle(parameters_.vararg->arg)] = make_tuple(std::move(rest));
    else if (!rest.empty())
      fail(cat("takes ", names_.size(), " positional arguments but ", arguments.positional.size(),
               " were given"));
  }

  bool accepts_keyword(const std::string& name) const {
    size_t positional_only = parameters_.posonlyargs.size();
    for (size_t i = positional_only; i < names_.size(); ++i)
      if (names_[i] == name) return true;
    for (const auto* parameter : parameters_.kwonlyargs)
      if (tree_.mangle(parameter->arg) == name) return true;
    return false;
  }

  void bind_keywords(const CallArguments& arguments) {
    auto rest = std::make_shared<Dictionary>();
    for (const auto& [name, value] : arguments.keywords) {
      if (accepts_keyword(name)) {
        if (variables_.values.contains(name)) fail(cat("got multiple values for '", name, "'"));
        variables_.values[name] = value;
      } else if (parameters_.kwarg != nullptr) {
        rest->items.emplace_back(as<Known>(interpreter_.string(name))->object, value);
      } else {
        fail(cat("got an unexpected keyword argument '", name, "'"));
      }
    }
    if (parameters_.kwarg != nullptr)
      variables_.values[tree_.mangle(parameters_.kwarg->arg)] = rest;
  }

  void fill_defaults(const Defaults& defaults) {
    size_t first_default = names_.size() - std::min(names_.size(), defaults.positional.size());
    for (size_t i = 0; i < names_.size(); ++i) {
      if (variables_.values.contains(names_[i])) continue;
      if (i < first_default) fail(cat("missing the argument '", names_[i], "'"));
      variables_.values[names_[i]] = defaults.positional[i - first_default];
    }
    for (const auto* parameter : parameters_.kwonlyargs) {
      const std::string name = tree_.mangle(parameter->arg);
      if (variables_.values.contains(name)) continue;
      Value value = defaults.keyword(name);
      if (value == nullptr) fail(cat("missing the keyword argument '", name, "'"));
      variables_.values[name] = value;
    }
  }

  Interpreter& interpreter_;
  const syntax::Tree& tree_;
  const syntax::Arguments& parameters_;
  std::string function_;
  Variables& variables_;
  std::vector<std::string> names_;
};

/// The defaults that a function object of the real world has now.
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
  // All sides of the branches that are still open meet where the function returns.
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

}  // namespace

namespace {

/// A generator is run to its end at once. That is the same only if nothing that it does can be
/// told apart from doing it later: it may read, but neither compute tensors nor change anything.
Value run_generator(Interpreter& interpreter, Frame& frame, const syntax::Body& body) {
  if (interpreter.at_next_yield) {  // it is a context manager, and not run ahead
    frame.at_yield = std::exchange(interpreter.at_next_yield, nullptr);
    return interpreter.run_frame(frame, [&] { return run_body(interpreter, &body, nullptr); });
  }
  if (interpreter.at_entry()) interpreter.refuse(ReasonCode::generator, frame.name);
  auto yielded = std::make_shared<std::vector<Value>>();
  frame.yielded = yielded.get();
  const auto& nodes = interpreter.builder().block().nodes;
  size_t first = nodes.size(), writes = interpreter.history.overwritten.size(),
         effects = interpreter.effect_count();
  interpreter.run_frame(frame, [&] {
    const Awaiting nothing(interpreter, Awaiting::What::nothing);
    execute(interpreter, body);
    return Value();
  });
  bool computes =
      writes != interpreter.history.overwritten.size() || effects != interpreter.effect_count();
  for (size_t i = first; i < nodes.size(); ++i) {
    const graph::OpDef& op = *nodes[i]->op;
    const bool is_given = op.role == graph::Role::constant || op.role == graph::Role::state ||
                          op.role == graph::Role::size;
    computes = computes || !(is_given || &op == &op::python_call || ops::is_of_numbers(op));
  }
  if (computes) interpreter.refuse(ReasonCode::generator, frame.name);
  auto generator = iterate_elements(std::move(*yielded));
  generator->type = &PyGen_Type;
  return generator;
}

}  // namespace

Value run_code(Interpreter& interpreter, const std::shared_ptr<const Code>& code,
               const CallArguments& arguments) {
  const syntax::Tree& tree = *code->tree;
  if (tree.scope->has_await ||
      (tree.function != nullptr && tree.function->kind == syntax::StatementKind::AsyncFunctionDef))
    interpreter.refuse(ReasonCode::generator, tree.name);
  auto variables = std::make_shared<Variables>();
  variables->scope = tree.scope;
  Binding(interpreter, tree, *tree.arguments, tree.name, *variables)
      .run(arguments, defaults_of(interpreter, *code));
  auto run = [&](const std::shared_ptr<Variables>& bound) {
    Frame frame = interpreter.make_frame(code, bound, tree.name);
    frame.environment = code->function.get();
    remember_arguments(frame, tree, *tree.arguments, *bound);
    if (tree.scope->has_yield) return run_generator(interpreter, frame, tree.body);
    const Value result = interpreter.run_frame(frame, [&] {
      return run_body(interpreter, &tree.body,
                      tree.lambda != nullptr ? tree.lambda->body : nullptr);
    });
    return settle_outcome(interpreter, result);
  };
  if (tree.scope->has_yield || interpreter.is_library(tree)) return run(variables);
  return recursion_of(interpreter).invoke(
      {tree.scope, code->function.get(), code->facts_key, tree.name, std::move(variables), run});
}

Value inline_function(Interpreter& interpreter, PyObject* function, const Source* source,
                      const CallArguments& arguments) {
  std::shared_ptr<const Code> code = interpreter.code_of(function, source);
  interpreter.mark(speculate::LineMark::Kind::constant, "inlined " + code->tree->name);
  return run_code(interpreter, code, arguments);
}

// --- closures -----------------------------------------------------------------------------------

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

namespace {

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
  Binding(interpreter, *closure.code->tree, *closure.arguments, closure.name, *variables)
      .run(arguments, defaults);
  const bool is_generator = closure.scope->has_yield && closure.body != nullptr;
  auto run = [&](const std::shared_ptr<Variables>& bound) {
    Frame frame = interpreter.make_frame(closure.code, bound, closure.name);
    frame.environment = closure.variables.get();
    remember_arguments(frame, *closure.code->tree, *closure.arguments, *bound);
    if (is_generator) return run_generator(interpreter, frame, *closure.body);
    const Value result = interpreter.run_frame(
        frame, [&] { return run_body(interpreter, closure.body, closure.expression); });
    return settle_outcome(interpreter, result);
  };
  if (is_generator || interpreter.is_library(*closure.code->tree)) return run(variables);
  return recursion_of(interpreter).invoke({closure.scope, closure.variables.get(),
                                         closure.code->facts_key, closure.name,
                                         std::move(variables), run});
}

}  // namespace

// --- context managers that are generators -------------------------------------------------------

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

/// Whether the expression, which may be evaluated again then, can be a generator function: a
/// variable, or a method of what one holds.
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

}  // namespace

bool for_each_yielded(Interpreter& interpreter, const syntax::Expression& expression,
                      const std::function<void(const Value&)>& body) {
  const auto* call_expression = syntax::try_as<syntax::Call>(&expression);
  if (call_expression == nullptr || !may_be_generator(interpreter, *call_expression->func))
    return false;
  const Value callee = evaluate(interpreter, *call_expression->func);
  if (!is_generator_function(callee)) return false;
  const CallArguments arguments = evaluate_arguments(interpreter, *call_expression);
  interpreter.at(expression);
  Frame& frame = interpreter.frame();
  const Awaiting nothing(interpreter, Awaiting::What::nothing);
  interpreter.at_next_yield = [&](const Value& value) {
    interpreter.in_frame(frame, [&] { body(value); });
  };
  call(interpreter, callee, arguments);
  return true;
}

/// What `@contextlib.contextmanager` makes of a call: the generator runs up to its `yield`, there
/// what the `with` statement surrounds, then the rest.
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
  context->around = [function, given](Interpreter& inner, const ContextManager::Body& body) {
    Frame& outer = inner.frame();
    const Awaiting nothing(inner, Awaiting::What::nothing);
    const size_t scopes = inner.open_scopes();
    bool yields = false;
    inner.at_next_yield = [&](const Value& value) {
      if (yields || inner.open_scopes() != scopes)
        inner.refuse(ReasonCode::generator, "a context manager that yields twice or in a branch");
      yields = true;
      inner.in_frame(outer, [&] { body(value); });
    };
    call(inner, function, given);
    if (!yields) inner.refuse(ReasonCode::would_raise, "RuntimeError: generator didn't yield");
  };
  return context;
}

namespace {

// --- known callables ----------------------------------------------------------------------------

/// Builtin modules whose functions only compute: on constants they are run now.
bool is_pure_builtin(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return false;
  Object module = Object::steal(PyObject_GetAttrString(callable, "__module__"));
  PyErr_Clear();
  std::string name = text_of(module.get());
  if (name == "builtins") {
    const std::string function =
        text_of(Object::steal(PyObject_GetAttrString(callable, "__name__")).get());
    return function == "ord" || function == "chr" || function == "bin" || function == "hex" ||
           function == "oct";
  }
  return name == "math" || name == "cmath" || name == "_operator";
}

/// Methods of immutable objects: they only compute as well.
bool is_method_of_immutable(PyObject* callable) {
  if (Py_TYPE(callable) != &PyMethodDescr_Type && Py_TYPE(callable) != &PyWrapperDescr_Type)
    return false;
  PyTypeObject* owner = PyDescr_TYPE(callable);
  return owner == &PyUnicode_Type || owner == &PyLong_Type || owner == &PyFloat_Type ||
         owner == &PyBytes_Type || owner == &PyBool_Type || owner == &PyTuple_Type ||
         owner == &PyComplex_Type;
}

std::vector<Value> all_values(const CallArguments& arguments) {
  std::vector<Value> values = arguments.positional;
  for (const auto& [name, value] : arguments.keywords) values.push_back(value);
  return values;
}

bool any_needs_run(const CallArguments& arguments) {
  for (const Value& value : all_values(arguments))
    if (needs_run(value)) return true;
  return false;
}

Value call_now(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) {
  Object positional =
      interpreter.must(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional.size())));
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i),
                     folded(interpreter, arguments.positional[i]).release());
  Object keywords = interpreter.must(PyDict_New());
  for (const auto& [name, value] : arguments.keywords)
    PyDict_SetItemString(keywords.get(), name.c_str(), folded(interpreter, value).get());
  Object result = interpreter.must(PyObject_Call(callable, positional.get(), keywords.get()));
  if (!is_immutable_constant(result.get()) && !PyList_CheckExact(result.get()))
    interpreter.refuse(ReasonCode::unknown_callable,
                       describe_callable(interpreter.constant_borrowed(callable)));
  if (PyList_CheckExact(result.get())) {
    std::vector<Value> elements;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(result.get()); ++i) {
      PyObject* element = PyList_GET_ITEM(result.get(), i);
      if (!is_immutable_constant(element))
        interpreter.refuse(ReasonCode::unknown_callable,
                           describe_callable(interpreter.constant_borrowed(callable)));
      elements.push_back(interpreter.constant_borrowed(element));
    }
    return make_list(std::move(elements));
  }
  return interpreter.constant(result);
}

Value call_pure_builtin(Interpreter& interpreter, PyObject* callable,
                        const CallArguments& arguments) {
  if (any_needs_run(arguments)) {
    bool makes_string =
        Py_TYPE(callable) == &PyMethodDescr_Type && PyDescr_TYPE(callable) == &PyUnicode_Type;
    std::string name = describe_callable(interpreter.constant_borrowed(callable));
    if (makes_string && name == "str.format")
      return defer_formatting(interpreter, callable, arguments);
    if (makes_string && name == "str.join")
      return defer(interpreter, Object::borrow(callable), arguments, &PyUnicode_Type);
    interpreter.refuse(ReasonCode::dynamic_value, "an argument of " + name);
  }
  return call_now(interpreter, callable, arguments);
}

Value call_partial(Interpreter& interpreter, const Value& value, const CallArguments& arguments) {
  CallArguments all;
  all.positional = elements_of(interpreter, attribute(interpreter, value, "args"));
  all.positional.insert(all.positional.end(), arguments.positional.begin(),
                        arguments.positional.end());
  all.keywords = arguments.keywords;
  Value keywords = opened(interpreter, attribute(interpreter, value, "keywords"));
  if (const auto* dictionary = as<Dictionary>(keywords))
    for (const auto& [key, element] : dictionary->items)
      if (all.keyword(text_of(key.get())) == nullptr)
        all.keywords.emplace_back(text_of(key.get()), element);
  return call(interpreter, attribute(interpreter, value, "func"), all);
}

/// Whether the class makes its objects as namedtuple's own `__new__` does: of the fields as they
/// are.
bool is_namedtuple(PyTypeObject* type) {
  if (tuple_fields(type) == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* constructor = PyDict_GetItemString(base->tp_dict, "__new__");
    if (constructor == nullptr) continue;
    return base->tp_base == &PyTuple_Type &&
           PyDict_GetItemString(base->tp_dict, "_make") != nullptr &&
           (PyFunction_Check(constructor) || Py_TYPE(constructor) == &PyStaticMethod_Type);
  }
  return false;
}

/// What a field of a named tuple is that is not given.
Value field_default(Interpreter& interpreter, const Known& type, Py_ssize_t index) {
  const Object constructor = interpreter.must(PyObject_GetAttrString(type.object.get(), "__new__"));
  PyObject* fields = tuple_fields(reinterpret_cast<PyTypeObject*>(type.object.get()));
  PyObject* defaults =
      PyFunction_Check(constructor.get()) ? PyFunction_GetDefaults(constructor.get()) : nullptr;
  const Py_ssize_t count = defaults == nullptr ? 0 : PyTuple_GET_SIZE(defaults);
  const Py_ssize_t at = index - (PyTuple_GET_SIZE(fields) - count);
  if (at < 0)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: a field of a named tuple is missing");
  const Object value = Object::borrow(PyTuple_GET_ITEM(defaults, at));
  return interpreter.wrap(value.get(), interpreter.sources().root(Source::Kind::constant, value));
}

Value make_namedtuple(Interpreter& interpreter, const Known& known,
                      const CallArguments& arguments) {
  PyObject* fields = tuple_fields(reinterpret_cast<PyTypeObject*>(known.object.get()));
  auto result = std::make_shared<Sequence>(false);
  result->type = known.object;
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(fields));
  result->elements = arguments.positional;
  size_t defaults = 0;
  for (size_t i = result->elements.size(); i < count; ++i) {
    const Value* value =
        arguments.keyword(text_of(PyTuple_GET_ITEM(fields, static_cast<Py_ssize_t>(i))));
    const Value otherwise =
        value != nullptr ? nullptr : field_default(interpreter, known, static_cast<Py_ssize_t>(i));
    result->elements.push_back(value != nullptr ? *value : otherwise);
    defaults += value == nullptr;
  }
  if (result->elements.size() != count ||
      arguments.positional.size() + arguments.keywords.size() + defaults != count)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: arguments of a named tuple");
  return result;
}

/// Enumeration(value): the member, which has been there all the time.
Value member_of(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  if (arguments.positional.size() != 1 || !arguments.keywords.empty() ||
      as<Known>(arguments.positional[0]) == nullptr)
    return nullptr;
  interpreter.assume_identity(known);
  Object members =
      interpreter.must(PyObject_GetAttrString(known.object.get(), "_value2member_map_"));
  const Object value = folded(interpreter, arguments.positional[0]);
  const Object member = python::dict_item(members.get(), value.get());
  if (!member) return nullptr;
  return interpreter.wrap(member.get(), interpreter.sources().root(Source::Kind::constant, member));
}

Value call_class(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  if (is_enumeration(reinterpret_cast<PyTypeObject*>(known.object.get())))
    if (Value member = member_of(interpreter, known, arguments)) return member;
  auto* type = reinterpret_cast<PyTypeObject*>(known.object.get());
  if (is_namedtuple(type)) return make_namedtuple(interpreter, known, arguments);
  if (PyExceptionClass_Check(known.object.get()))
    if (Value made = make_exception(interpreter, known, arguments)) return made;
  if (is_torch_constant_class(type)) {
    Object positional = interpreter.must(PyTuple_New(Py_ssize_t(arguments.positional.size())));
    for (size_t i = 0; i < arguments.positional.size(); ++i)
      PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i),
                       folded(interpreter, arguments.positional[i]).release());
    if (arguments.keywords.empty())
      return interpreter.constant(
          interpreter.must(PyObject_Call(known.object.get(), positional.get(), nullptr)));
  }
  if (Value made = make_instance(interpreter, known, arguments)) return made;
  interpreter.refuse(ReasonCode::unknown_callable,
                     describe_callable(interpreter.constant(known.object)));
}

Value call_bound_method(Interpreter& interpreter, const Known& known,
                        const CallArguments& arguments) {
  PyObject* method = known.object.get();
  const Source* source = known.source;
  auto step = [&](Source::Kind kind) {
    return source == nullptr ? nullptr : interpreter.sources().step(kind, source);
  };
  Value self = interpreter.wrap(PyMethod_GET_SELF(method), step(Source::Kind::bound_self));
  Value function =
      interpreter.wrap(PyMethod_GET_FUNCTION(method), step(Source::Kind::bound_function));
  return call(interpreter, std::make_shared<Method>(self, function), arguments);
}

/// A weak reference that is alive gives its object as long as it is this reference.
Value call_weak_reference(Interpreter& interpreter, const Known& known) {
  interpreter.assume_identity(known);
  Object object = interpreter.must(PyObject_CallNoArgs(known.object.get()));
  if (object.is(Py_None)) interpreter.refuse(ReasonCode::dynamic_value, "a dead reference");
  return interpreter.wrap(object.get(), interpreter.sources().root(Source::Kind::constant, object));
}

/// `ValueError.__init__`: each class has its own.
bool is_exception_initialiser(PyObject* object) {
  return Py_TYPE(object) == &PyWrapperDescr_Type &&
         PyExceptionClass_Check(reinterpret_cast<PyObject*>(PyDescr_TYPE(object))) &&
         text_of(PyDescr_NAME(object)) == "__init__";
}

bool is_partial(PyObject* object) {
  static PyObject* const type = imported("functools.partial");
  return type != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

/// That a callable whose meaning is known by which object it is stays that object, with its body.
void assume_meaning(Interpreter& interpreter, const Known& known) {
  interpreter.assume_identity(known);
  PyObject* const object = known.object.get();
  if (!PyFunction_Check(object)) return;
  const Source* function = interpreter.sources().root(Source::Kind::constant, known.object);
  interpreter.assume(Assumption::Kind::identity,
                     interpreter.sources().step(Source::Kind::code, function),
                     Object::borrow(PyFunction_GET_CODE(object)));
}

Value call_known(Interpreter& interpreter, const Value& callee, const CallArguments& arguments) {
  const auto& known = *as<Known>(callee);
  PyObject* object = known.object.get();
  const bool is_inlined = PyFunction_Check(object) || PyMethod_Check(object);
  if (!is_inlined || special_handler(object))
    if (Value both = for_both(interpreter, arguments, [&](const CallArguments& given) {
          return call(interpreter, callee, given);
        }))
      return both;
  if (Handler handler = special_handler(object)) {
    expect_settled(arguments);
    assume_meaning(interpreter, known);
    if (Value result = handler(interpreter, arguments)) return result;
  }
  if (!PyFunction_Check(object) && !PyMethod_Check(object)) expect_settled(arguments);
  if (Value result = call_operator(interpreter, object, arguments)) {
    assume_meaning(interpreter, known);
    return result;
  }
  if (PyType_Check(object)) return call_class(interpreter, known, arguments);
  if (PyFunction_Check(object)) {
    const Awaiting nothing(interpreter, Awaiting::What::nothing);
    if (Value result = call_decorated(interpreter, known, arguments)) return result;
  }
  if (PyFunction_Check(object))
    return inline_function(interpreter, object, known.source, arguments);
  if (PyMethod_Check(object)) return call_bound_method(interpreter, known, arguments);
  if (is_pure_builtin(object) || is_method_of_immutable(object))
    return call_pure_builtin(interpreter, object, arguments);
  if (PyWeakref_CheckRefExact(object) && arguments.positional.empty())
    return call_weak_reference(interpreter, known);
  if (is_partial(object)) return call_partial(interpreter, callee, arguments);
  if (is_cached_function(Py_TYPE(object)))
    if (Value held = call_cached_function(interpreter, known, arguments)) return held;
  if (PyObject* function = speculate::function_of_converted(object)) {
    interpreter.assume_identity(known);
    const Source* path =
        interpreter.sources().step(Source::Kind::attribute, path_of(interpreter, known),
                                   Object::steal(PyUnicode_InternFromString("__wrapped__")));
    return inline_function(interpreter, function, path, arguments);
  }
  if (Value result = call_container_function(interpreter, object, arguments)) return result;
  if (Value result = call_scripted(interpreter, known, arguments)) return result;
  if (is_exception_initialiser(object))
    if (Value result = initialise_exception(interpreter, arguments)) return result;
  if (PyCFunction_Check(object) || Py_TYPE(object) == &PyMethodDescr_Type ||
      Py_TYPE(object) == &PyWrapperDescr_Type)
    interpreter.refuse(ReasonCode::unknown_callable, describe_callable(callee));
  if (Value method = special_method(interpreter, callee, "__call__"))
    return call(interpreter, method, arguments);
  interpreter.refuse(ReasonCode::unknown_callable, describe_callable(callee));
}

}  // namespace

Value call_value(Interpreter& interpreter, const Value& callee, const CallArguments& arguments) {
  interpreter.check_size();
  if (Value both = for_both(interpreter, callee,
                            [&](const Value& one) { return call(interpreter, one, arguments); }))
    return both;
  switch (callee->kind) {
    case ValueKind::known:
      return call_known(interpreter, callee, arguments);
    case ValueKind::method: {
      const auto& method = *as<Method>(callee);
      CallArguments with_self = arguments;
      with_self.positional.insert(with_self.positional.begin(), method.self);
      return call(interpreter, method.function, with_self);
    }
    case ValueKind::instance:
      if (Value method = special_method(interpreter, callee, "__call__"))
        return call(interpreter, method, arguments);
      break;
    case ValueKind::closure:
      return call_closure(interpreter, *as<Closure>(callee), arguments);
    case ValueKind::native:
      return as<Native>(callee)->function(interpreter, arguments);
    case ValueKind::context: {
      auto context = shared_as<ContextManager>(callee);
      if (!context->decorates || arguments.positional.size() != 1) break;
      Value function = arguments.positional[0];
      return std::make_shared<Native>(
          describe_callable(function),
          [context, function](Interpreter& inner, const CallArguments& inner_arguments) {
            const Awaiting nothing(inner, Awaiting::What::nothing);
            context->enter(inner);
            Value result = call(inner, function, inner_arguments);
            context->exit(inner);
            return result;
          });
    }
    default:
      break;
  }
  interpreter.refuse(ReasonCode::unknown_callable, describe_callable(callee));
}

}  // namespace janus::frontend
