#include "frontend/counted.h"

#include <algorithm>

#include "frontend/branches.h"
#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/entry_lists.h"
#include "frontend/expressions.h"
#include "frontend/loops.h"
#include "frontend/operators.h"
#include "frontend/rolled.h"
#include "frontend/run_time.h"
#include "frontend/tensor.h"
#include "python/integer.h"

namespace janus::frontend {

using syntax::CompareOperator;
using syntax::Operator;

namespace {

bool is_int_number(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->type == graph::Type::Kind::i64;
  const auto* known = as<Known>(value);
  return known != nullptr && PyLong_CheckExact(known->object.get());
}

/// Nothing: it is no constant, or too great.
std::optional<int64_t> known_integer(const Value& value) {
  const auto* known = as<Known>(value);
  return known == nullptr ? std::nullopt : python::int64_of(known->object.get());
}

/// Whether a loop over it is one in the graph.
bool is_in_graph(const Interpreter& interpreter, const Counted& counted) {
  return counted.is_rolled || std::ranges::any_of(counted.lengths, [&](const Value& length) {
           return as<Number>(length) != nullptr ||
                  known_integer(length).value_or(-1) > interpreter.most_unrolled;
         });
}

/// The step of a range if it is a small constant but 0.
std::optional<int64_t> known_step(const Value& step) {
  const std::optional<int64_t> number = known_integer(step);
  return number != 0 ? number : std::nullopt;
}

Value plus(Interpreter& interpreter, const Value& start, const Value& offset) {
  const auto* known = as<Known>(start);
  if (known != nullptr && PyLong_AsLongLong(known->object.get()) == 0) return offset;
  PyErr_Clear();
  return binary(interpreter, Operator::Add, start, offset);
}

std::optional<Counted> counted_range(Interpreter& interpreter, const CallArguments& arguments) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.keywords.empty()) return std::nullopt;
  for (const Value& bound : given)
    if (!is_int_number(bound)) return std::nullopt;
  Value start = given.size() > 1 ? given[0] : interpreter.integer(0);
  Value stop = given.size() > 1 ? given[1] : given[0];
  Value step = given.size() > 2 ? given[2] : interpreter.integer(1);
  std::optional<int64_t> by = known_step(step);
  if (!by) return std::nullopt;
  // Rounded up; what is below 0 counts as 0.
  Value distance =
      binary(interpreter, Operator::Sub, *by > 0 ? stop : start, *by > 0 ? start : stop);
  int64_t size = *by > 0 ? *by : -*by;
  Value length =
      size == 1
          ? distance
          : binary(interpreter, Operator::FloorDiv,
                   binary(interpreter, Operator::Add, distance, interpreter.integer(size - 1)),
                   interpreter.integer(size));
  Counted counted;
  counted.lengths = {length};
  counted.element = [&interpreter, start, step, by](const Value& position) {
    return plus(interpreter, start,
                by == 1 ? position : binary(interpreter, Operator::Mult, position, step));
  };
  return counted;
}

std::optional<Counted> counted_rows(Interpreter& interpreter, const Value& value) {
  auto tensor = shared_as<Tensor>(value);
  if (tensor == nullptr || tensor->value->type.rank() == 0) return std::nullopt;
  Counted counted;
  counted.lengths = {interpreter.dimension(tensor->value->type.shape[0])};
  counted.element = [&interpreter, tensor](const Value& position) {
    return index_tensor(interpreter, tensor, position);
  };
  return counted;
}

/// The elements of a list that grew in the graph are taken from a copy of it that gets shorter.
std::optional<Counted> counted_list(Interpreter& interpreter, const Value& value, bool backwards) {
  auto list = shared_as<Sequence>(opened_if_varying(interpreter, value));
  if (list == nullptr || rolled(list) == nullptr) return std::nullopt;
  std::shared_ptr<const Rolled> all = list->elements.rolled();
  auto rest = std::make_shared<Sequence>(true);
  rest->elements = ElementList(facing(interpreter, backwards ? *reversed(*all) : *all, true));
  Counted counted;
  counted.is_rolled = true;
  counted.lengths = {length_of(interpreter, *all)};
  counted.element = [&interpreter, list, all, rest, partly = counted.partly](const Value&) {
    const Rolled* now = list->elements.rolled().get();
    if (now == nullptr || now->lists != all->lists)
      throw CannotMerge{all->test, "a list grows while it is iterated"};
    auto next = popped(interpreter, *rest->elements.rolled(), true, *partly);
    rest->elements = ElementList(next->rest);
    return next->element;
  };
  return counted;
}

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

Counted zipped(std::vector<Counted> parts) {
  Counted counted;
  for (const Counted& part : parts) {
    counted.lengths.insert(counted.lengths.end(), part.lengths.begin(), part.lengths.end());
    counted.is_rolled = counted.is_rolled || part.is_rolled;
    *part.partly = parts.size() > 1;
  }
  counted.element = [parts = std::move(parts)](const Value& position) -> Value {
    std::vector<Value> elements;
    for (const Counted& part : parts) elements.push_back(part.element(position));
    return make_tuple(std::move(elements));
  };
  return counted;
}

Counted enumerated(Interpreter& interpreter, Counted inner, const Value& start) {
  Counted counted;
  counted.lengths = inner.lengths;
  counted.is_rolled = inner.is_rolled;
  counted.partly = inner.partly;
  counted.element = [&interpreter, inner = std::move(inner), start](const Value& position) {
    Value number = plus(interpreter, start, position);
    return make_tuple({number, inner.element(position)});
  };
  return counted;
}

/// `strict=False` of zip() says nothing.
bool says_nothing(const syntax::Keyword* keyword) {
  const auto* value = syntax::try_as<syntax::Constant>(keyword->value);
  return keyword->arg == "strict" && value != nullptr && value->value.is(Py_False);
}

bool is_plain_call(const syntax::Call& call) {
  for (const syntax::Expression* argument : call.args)
    if (argument->kind == syntax::ExpressionKind::Starred) return false;
  return std::all_of(call.keywords.begin(), call.keywords.end(), says_nothing);
}

/// A value for what could have been counted but is not, with its parts evaluated already.
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

/// The elements from the last to the first.
Counted backwards(Interpreter& interpreter, Counted inner) {
  const Value last =
      binary(interpreter, Operator::Sub, inner.lengths.front(), interpreter.integer(1));
  Counted counted;
  counted.lengths = inner.lengths;
  counted.element = [&interpreter, inner = std::move(inner), last](const Value& position) {
    return inner.element(binary(interpreter, Operator::Sub, last, position));
  };
  return counted;
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
    if (part.value == nullptr) throw CannotMerge{loop, "it goes over a counted thing and another"};
  result.value = uncounted(interpreter, callee, parts);
  return result;
}

}  // namespace

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

std::optional<Counted> counted_elements(Interpreter& interpreter, const Value& value, int fact) {
  auto object = shared_as<RuntimeObject>(value);
  if (object == nullptr) return std::nullopt;
  const speculate::NodeFact* seen = interpreter.fact(fact);
  Counted counted;
  counted.lengths = {run_time_length(interpreter, *object, fact)};
  counted.element = [&interpreter, object, seen, fact](const Value& position) {
    return run_time_item(interpreter, *object, position, seen == nullptr ? nullptr : &seen->element,
                         fact);
  };
  return counted;
}

Value expected_elements(Interpreter& interpreter, const RuntimeObject& object, int loop,
                        int iterable) {
  const speculate::NodeFact* rounds = interpreter.fact(loop);
  const speculate::NodeFact* seen = interpreter.fact(iterable);
  if (rounds == nullptr || seen == nullptr || rounds->most_trips < 0 ||
      rounds->least_trips != rounds->most_trips)
    interpreter.refuse(ReasonCode::dynamic_control, "the rounds over a list met at run time");
  Value length = run_time_length(interpreter, object, iterable);
  Value same =
      compare(interpreter, CompareOperator::Eq, length, interpreter.integer(rounds->most_trips));
  interpreter.guard_kinds(interpreter.graph_value(same), loop);
  std::vector<Value> elements;
  for (int64_t i = 0; i < rounds->most_trips; ++i)
    elements.push_back(
        run_time_item(interpreter, object, interpreter.integer(i), &seen->element, iterable));
  return make_tuple(std::move(elements));
}

Value rounds_of(Interpreter& interpreter, const Counted& counted) {
  std::optional<graph::Dim> least;
  for (const Value& length : counted.lengths) {
    std::optional<graph::Dim> dim;
    if (const auto* number = as<Number>(length)) dim = number->dim;
    if (const auto* known = as<Known>(length))
      dim = graph::Dim(int64_t{PyLong_AsLongLong(known->object.get())});
    if (!dim) return nullptr;
    least = !least || *least == *dim ? *dim : graph::minimum(*least, *dim);
  }
  if (!least) return nullptr;
  if (least->lower_bound().value_or(-1) < 0) least = graph::maximum(graph::Dim(0), *least);
  return interpreter.dimension(*least);
}

namespace {

/// Whether `position` is still an element's.
Value is_inside(Interpreter& interpreter, const Counted& counted, const Value& position) {
  Value inside = interpreter.boolean(true);
  for (const Value& length : counted.lengths) {
    const Value fits = compare(interpreter, CompareOperator::Lt, position, length);
    inside = both_flags(interpreter, inside, fits);
  }
  return inside;
}

}  // namespace

Positions::Positions(Interpreter& interpreter, const Counted& counted)
    : interpreter_(interpreter), counted_(counted), state_(std::make_shared<Variables>()) {
  state_->values["position"] = interpreter.integer(0);
}

Truth Positions::has_next() const {
  return truth_of(interpreter_, is_inside(interpreter_, counted_, state_->values["position"]));
}

Value Positions::next() {
  const Value at = state_->values["position"];
  state_->values["position"] = binary(interpreter_, Operator::Add, at, interpreter_.integer(1));
  return counted_.element(at);
}

void append_counted(Interpreter& interpreter, const TestKey& test, Sequence& list,
                    const Counted& counted, bool may_be_empty) {
  Positions positions(interpreter, counted);
  LoopParts parts;
  parts.test = [&] { return positions.has_next(); };
  parts.round = [&] {
    append(interpreter, list, positions.next());
    return Completion::normal;
  };
  parts.rounds = [&] { return rounds_of(interpreter, counted); };
  parts.may_be_empty = may_be_empty;
  loop_in_graph(interpreter, test, parts);
}

}  // namespace janus::frontend
