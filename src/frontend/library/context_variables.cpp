// contextvars.ContextVar: what the run sets is a change of the heap, as that of a closure's cell
// is. Mostly it is reset before the run ends; then nothing is written.
#include <algorithm>

#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/object_kinds.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "python/context_variable.h"

namespace janus::frontend {

using python::Object;

namespace {

using Arguments = CallArguments;

constexpr const char* kToken = "contextvars.Token";

/// The variable that a method is called with, which is assumed to be that one.
const Known& variable_of(Interpreter& interpreter, const Arguments& arguments, size_t count) {
  const Known* variable = arguments.positional.size() == count && arguments.keywords.empty()
                              ? as<Known>(arguments.positional[0])
                              : nullptr;
  if (variable == nullptr || !PyContextVar_CheckExact(variable->object.get()))
    interpreter.refuse(ReasonCode::unsupported_argument, "a context variable");
  interpreter.assume_identity(*variable);
  return *variable;
}

const Source* value_path(GraphWriter& writer, const Known& variable) {
  return writer.sources().step(Source::Kind::context_value, path_of(writer, variable));
}

/// What it holds; null: nothing, and it has no default.
Value read(Interpreter& interpreter, const Known& variable) {
  PyObject* const object = variable.object.get();
  const Held written = interpreter.heap.find(interpreter, object, Py_None, variable.source);
  if (!written.is_unknown()) return written.value_or_null();
  const Object held = python::held_by_context_variable(object);
  return held ? interpreter.wrap(held.get(), value_path(interpreter, variable)) : nullptr;
}

/// Refuses a change after an effect. Effects run after the graph, and code of the program that they
/// call would see the variable as it is at the end.
void expect_nothing_shown(Interpreter& interpreter) {
  const auto& effects = interpreter.effects;
  const bool is_shown = std::ranges::any_of(effects, [](const speculate::Effect& effect) {
    return !effect.call.object || !is_cached_function(Py_TYPE(effect.call.object.get()));
  });
  if (is_shown || interpreter.journal.is_open())
    interpreter.refuse(ReasonCode::heap_write, "a context variable behind what the run shows");
}

void write(Interpreter& interpreter, const Known& variable, const Value& value) {
  expect_nothing_shown(interpreter);
  Heap::Target target;
  target.table = variable.object.get();
  target.kind = speculate::HeapWrite::Kind::context_variable;
  target.owner = path_of(interpreter, variable);
  target.object = variable.object;
  interpreter.write_place(target, Object::borrow(Py_None), value_path(interpreter, variable),
                          value);
}

Value call_get(Interpreter& interpreter, const Arguments& arguments) {
  Value value = read(interpreter, variable_of(interpreter, arguments, 1));
  if (value == nullptr)
    interpreter.refuse(ReasonCode::dynamic_value, "a context variable that is not set");
  return value;
}

/// The token is what `reset` calls, once, with the variable.
Value call_set(Interpreter& interpreter, const Arguments& arguments) {
  const Known& variable = variable_of(interpreter, arguments, 2);
  const Held written =
      interpreter.heap.find(interpreter, variable.object.get(), Py_None, variable.source);
  const Value before = written.is_value() ? written.value() : nullptr;
  write(interpreter, variable, arguments.positional[1]);
  const auto was_used = std::make_shared<bool>(false);
  return std::make_shared<Native>(kToken, [before, was_used, object = variable.object](
                                              Interpreter& inner, const Arguments& given) {
    const Known& reset = variable_of(inner, given, 1);
    if (*was_used || !reset.object.is(object.get()))
      inner.refuse(ReasonCode::would_raise, "the token of another context variable, or used");
    *was_used = true;
    if (before != nullptr) {
      write(inner, reset, before);
    } else {
      expect_nothing_shown(inner);
      inner.heap.forget(reset.object.get());
    }
    return inner.none();
  });
}

Value call_reset(Interpreter& interpreter, const Arguments& arguments) {
  variable_of(interpreter, arguments, 2);
  const auto* token = as<Native>(arguments.positional[1]);
  if (token == nullptr || token->name != kToken)
    interpreter.refuse(ReasonCode::unsupported_argument, "ContextVar.reset");
  return token->function(interpreter, {.positional = {arguments.positional[0]}, .keywords = {}});
}

}  // namespace

std::span<const SpecialCallable> context_variable_callables() {
  static constexpr SpecialCallable table[] = {
      {"contextvars.ContextVar.get", call_get},
      {"contextvars.ContextVar.set", call_set},
      {"contextvars.ContextVar.reset", call_reset},
  };
  return table;
}

}  // namespace janus::frontend
