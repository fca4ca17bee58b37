// Formatted strings: what is known is formatted now, the rest becomes a recipe that Python follows
// after the run.
#include "frontend/strings.h"

#include "frontend/attributes.h"
#include "frontend/callables.h"
#include "frontend/containers.h"
#include "frontend/epilogue.h"
#include "frontend/expressions.h"
#include "frontend/optional.h"
#include "frontend/rolled.h"

namespace janus::frontend {

using python::Object;

bool needs_run(const Value& value) {
  switch (value->kind) {
    case ValueKind::number:
    case ValueKind::tensor:
    case ValueKind::deferred:
    case ValueKind::either:
      return true;
    case ValueKind::sequence:
      if (rolled(value) != nullptr) return true;
      for (const Value& element : as<Sequence>(value)->elements)
        if (needs_run(element)) return true;
      return false;
    case ValueKind::dictionary:
      for (const auto& [key, element] : as<Dictionary>(value)->items)
        if (needs_run(element)) return true;
      return false;
    default:
      return false;
  }
}

Value defer(Interpreter& interpreter, Object callable, const CallArguments& arguments,
            PyTypeObject* type) {
  auto deferred = std::make_shared<Deferred>();
  deferred->type = Object::borrow(reinterpret_cast<PyObject*>(type));
  deferred->recipe.kind = speculate::Template::Kind::call;
  deferred->recipe.object = std::move(callable);
  for (const Value& value : arguments.positional)
    deferred->recipe.children.push_back(make_template(interpreter, value));
  for (const auto& [name, value] : arguments.keywords) {
    deferred->recipe.keyword_names.push_back(name);
    deferred->recipe.children.push_back(make_template(interpreter, value));
  }
  return deferred;
}

namespace {

/// Formatting of these only computes.
bool is_formattable(const Value& value) {
  if (needs_run(value)) {
    // A tensor is formatted as it is now, not as it is after later writes to it.
    return as<Tensor>(value) == nullptr || as<Tensor>(value)->source == nullptr;
  }
  const auto* known = as<Known>(value);
  return known == nullptr || is_immutable_constant(known->object.get()) ||
         is_torch_constant(known->object.get()) || PyType_Check(known->object.get());
}

Value converted(Interpreter& interpreter, const Value& value, int conversion) {
  if (conversion < 0) return value;
  const char* name = conversion == 'r'   ? "builtins.repr"
                     : conversion == 's' ? "builtins.str"
                                         : "builtins.ascii";
  PyObject* function = imported(name);
  if (needs_run(value)) {
    CallArguments arguments;
    arguments.positional = {value};
    return defer(interpreter, Object::borrow(function), arguments, &PyUnicode_Type);
  }
  return interpreter.constant(
      interpreter.must(PyObject_CallOneArg(function, folded(interpreter, value).get())));
}

}  // namespace

Value format_value(Interpreter& interpreter, const Value& value, int conversion,
                   const Value& spec) {
  if (Value both = for_both(interpreter, value, [&](const Value& one) {
        return format_value(interpreter, one, conversion, spec);
      }))
    return both;
  if (!is_formattable(value)) interpreter.refuse(ReasonCode::expression, "the text of an object");
  Value shown = converted(interpreter, value, conversion);
  Value format = spec != nullptr ? spec : interpreter.string("");
  if (!needs_run(shown) && !needs_run(format))
    return interpreter.constant(interpreter.must(
        PyObject_Format(folded(interpreter, shown).get(), folded(interpreter, format).get())));
  CallArguments arguments;
  arguments.positional = {shown, format};
  static PyObject* const function = imported("builtins.format");
  return defer(interpreter, Object::borrow(function), arguments, &PyUnicode_Type);
}

Value join_formatted(Interpreter& interpreter, const syntax::JoinedStr& string) {
  std::vector<Value> parts;
  bool deferred = false;
  for (const syntax::Expression* part : string.values) {
    parts.push_back(evaluate(interpreter, *part));
    deferred = deferred || needs_run(parts.back());
  }
  if (!deferred) {
    Object list = folded(interpreter, make_list(parts));
    Object empty = interpreter.must(PyUnicode_FromString(""));
    return interpreter.constant(interpreter.must(PyUnicode_Join(empty.get(), list.get())));
  }
  Value empty = interpreter.string("");
  CallArguments arguments;
  arguments.positional = {empty, make_tuple(std::move(parts))};
  static PyObject* const join = imported("builtins.str.join");
  return defer(interpreter, Object::borrow(join), arguments, &PyUnicode_Type);
}

}  // namespace janus::frontend
