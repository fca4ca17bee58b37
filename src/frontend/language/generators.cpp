// The consumer leaves what it does with a value in `at_next_yield`; the generator's frame calls it
// at each `yield`.
#include "frontend/language/generators.h"

#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/language/arguments.h"
#include "frontend/language/evaluation.h"
#include "frontend/objects/attributes.h"
#include "frontend/values/constants.h"

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

}  // namespace janus::frontend
