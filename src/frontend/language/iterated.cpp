// Finds range(), enumerate(), zip() and reversed() in what a loop goes over, and counts their
// iterations without making the elements.
#include "frontend/language/iterated.h"

#include <algorithm>

#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/language/arguments.h"
#include "frontend/language/evaluation.h"
#include "frontend/values/restart.h"
#include "syntax/folded_sets.h"

namespace janus::frontend {

namespace {

/// The parts of a call of enumerate() or zip(), if all of them are counted.
std::optional<std::vector<Counted>> counted_parts(Interpreter& interpreter,
                                                  std::vector<Iterated>& parts) {
  std::vector<Counted> all;
  for (Iterated& part : parts) {
    if (!part.counted) part.counted = counted_list(interpreter, part.value, false);
    if (!part.counted) part.counted = counted_rows(interpreter, part.value);
    if (!part.counted) return std::nullopt;
    all.push_back(*part.counted);
  }
  return all;
}

/// Whether the keyword changes nothing: zip(strict=False).
bool says_nothing(const syntax::Keyword* keyword) {
  const auto* value = syntax::try_as<syntax::Constant>(keyword->value);
  return keyword->arg == "strict" && value != nullptr && value->value.is(Py_False);
}

bool is_plain_call(const syntax::Call& call) {
  for (const syntax::Expression* argument : call.args)
    if (argument->kind == syntax::ExpressionKind::Starred) return false;
  return std::all_of(call.keywords.begin(), call.keywords.end(), says_nothing);
}

/// The iterable as a value, where it could have been counted but is not. Its parts are evaluated
/// already.
Value uncounted(Interpreter& interpreter, const Value& callee, std::vector<Iterated>& parts) {
  CallArguments arguments;
  for (Iterated& part : parts) arguments.positional.push_back(part.value);
  return call(interpreter, callee, arguments);
}

Iterated evaluate_call(Interpreter& interpreter, const syntax::Call& expression,
                       const TestKey& loop);

/// A part that enumerate() or zip() goes over, or the whole.
Iterated evaluate_part(Interpreter& interpreter, const syntax::Expression& expression,
                       const TestKey& loop) {
  const auto* call = syntax::try_as<syntax::Call>(&expression);
  if (call != nullptr && is_plain_call(*call)) return evaluate_call(interpreter, *call, loop);
  Iterated result;
  result.value = evaluate(interpreter, expression);
  return result;
}

/// reversed(range(...)); nothing: it is something else.
std::optional<Iterated> reversed_range(Interpreter& interpreter, const Value& reversed,
                                       const syntax::Expression& argument) {
  const auto* range = syntax::try_as<syntax::Call>(&argument);
  if (range == nullptr || range->func->kind != syntax::ExpressionKind::Name) return std::nullopt;
  const Value callee = evaluate(interpreter, *range->func);
  if (known_object(callee) != reinterpret_cast<PyObject*>(&PyRange_Type)) return std::nullopt;
  const CallArguments arguments = evaluate_arguments(interpreter, *range);
  interpreter.at(argument);
  Iterated result;
  result.counted = counted_range(interpreter, arguments);
  if (result.counted && is_in_graph(interpreter, *result.counted)) {
    result.counted = backwards(interpreter, std::move(*result.counted));
    return result;
  }
  result.counted.reset();
  CallArguments whole;
  whole.positional = {call(interpreter, callee, arguments)};
  result.value = call(interpreter, reversed, whole);
  return result;
}

Iterated evaluate_call(Interpreter& interpreter, const syntax::Call& expression,
                       const TestKey& loop) {
  Iterated result;
  Value callee = evaluate(interpreter, *expression.func);
  const auto* known = as<Known>(callee);
  auto is = [&](PyTypeObject& type) {
    return known != nullptr && known->object.is(reinterpret_cast<PyObject*>(&type));
  };
  bool combines = is(PyEnum_Type) || is(PyZip_Type);
  if (is(PyReversed_Type) && expression.args.size() == 1) {
    if (auto range = reversed_range(interpreter, callee, *expression.args[0])) return *range;
    CallArguments arguments = evaluate_arguments(interpreter, expression);
    interpreter.at(expression);
    result.counted = counted_list(interpreter, arguments.positional[0], true);
    if (!result.counted) result.value = frontend::call(interpreter, callee, arguments);
    return result;
  }
  if (!combines) {
    CallArguments arguments = evaluate_arguments(interpreter, expression);
    interpreter.at(expression);
    if (is(PyRange_Type)) result.counted = counted_range(interpreter, arguments);
    if (result.counted && is_in_graph(interpreter, *result.counted)) return result;
    result.counted.reset();
    result.value = frontend::call(interpreter, callee, arguments);
    return result;
  }
  std::vector<Iterated> parts;
  for (const syntax::Expression* argument : expression.args)
    parts.push_back(evaluate_part(interpreter, *argument, loop));
  interpreter.at(expression);
  bool one_start = is(PyEnum_Type) && parts.size() == 2 && is_int_number(parts[1].value);
  Value start = one_start ? parts[1].value : interpreter.integer(0);
  std::vector<Iterated> iterated(parts.begin(), parts.end() - (one_start ? 1 : 0));
  bool fits = !is(PyEnum_Type) || (iterated.size() == 1 && expression.keywords.empty());
  if (auto counted = counted_parts(interpreter, iterated); fits && counted && !counted->empty()) {
    Counted whole = is(PyEnum_Type) ? enumerated(interpreter, counted->front(), start)
                                    : zipped(std::move(*counted));
    if (is_in_graph(interpreter, whole)) {
      result.counted = std::move(whole);
      return result;
    }
  }
  if (is(PyEnum_Type) && !expression.keywords.empty())
    interpreter.refuse(ReasonCode::would_raise, "TypeError: a keyword argument of enumerate()");
  for (Iterated& part : parts)
    if (part.value == nullptr)
      throw CannotMerge{loop, "it goes over a counted iterable and another one"};
  result.value = uncounted(interpreter, callee, parts);
  return result;
}

}  // namespace

Value evaluate_iterable(Interpreter& interpreter, const syntax::Expression& expression) {
  const python::Object& code = interpreter.frame().code->facts_key;
  const python::Object folded = syntax::folded_set(expression, code.get());
  return folded ? interpreter.constant(folded) : evaluate(interpreter, expression);
}

Iterated evaluate_iterated(Interpreter& interpreter, const syntax::Expression& expression,
                           const TestKey& loop) {
  Iterated result = evaluate_part(interpreter, expression, loop);
  if (result.counted) return result;
  result.counted = counted_list(interpreter, result.value, false);
  if (result.counted) return result;
  result.counted = counted_elements(interpreter, result.value, expression.fact);
  if (result.counted) return result;
  std::optional<Counted> rows = counted_rows(interpreter, result.value);
  if (rows && is_in_graph(interpreter, *rows)) result.counted = std::move(rows);
  return result;
}

}  // namespace janus::frontend
