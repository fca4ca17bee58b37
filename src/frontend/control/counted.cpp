#include "frontend/control/counted.h"

#include <algorithm>

#include "frontend/control/entry_lists.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/loop_parts.h"
#include "frontend/control/loops.h"
#include "frontend/control/run_time_items.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/flags.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"
#include "frontend/values/truth.h"
#include "python/integer.h"

namespace janus::frontend {

using syntax::CompareOperator;
using syntax::Operator;

namespace {

/// The step of a range if it is a small constant but 0.
std::optional<int64_t> known_step(const Value& step) {
  const std::optional<int64_t> number = known_integer(step);
  return number != 0 ? number : std::nullopt;
}

Value plus(Interpreter& interpreter, const Value& start, const Value& offset) {
  if (known_integer(start) == 0) return offset;
  return binary(interpreter, Operator::Add, start, offset);
}

}  // namespace

bool is_int_number(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->type == graph::Type::Kind::i64;
  const auto* known = as<Known>(value);
  return known != nullptr && PyLong_CheckExact(known->object.get());
}

bool is_in_graph(const Scopes& scopes, const Counted& counted) {
  return counted.is_rolled || std::ranges::any_of(counted.lengths, [&](const Value& length) {
           return as<Number>(length) != nullptr ||
                  known_integer(length).value_or(-1) > scopes.most_unrolled;
         });
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
  const speculate::NodeFact* iterations = interpreter.fact(loop);
  const speculate::NodeFact* seen = interpreter.fact(iterable);
  if (iterations == nullptr || seen == nullptr || iterations->most_trips < 0 ||
      iterations->least_trips != iterations->most_trips)
    interpreter.refuse(ReasonCode::dynamic_control, "the iterations over a list met at run time");
  Value length = run_time_length(interpreter, object, iterable);
  Value same = compare(interpreter, CompareOperator::Eq, length,
                       interpreter.integer(iterations->most_trips));
  interpreter.guard_kinds(interpreter.graph_value(same), loop);
  std::vector<Value> elements;
  for (int64_t i = 0; i < iterations->most_trips; ++i)
    elements.push_back(
        run_time_item(interpreter, object, interpreter.integer(i), &seen->element, iterable));
  return make_tuple(std::move(elements));
}

Value iterations_of(ValueMaker& maker, const Counted& counted) {
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
  return maker.dimension(*least);
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
  parts.iteration = [&] {
    append(interpreter, list, positions.next());
    return Completion::normal;
  };
  parts.iterations = [&] { return iterations_of(interpreter, counted); };
  parts.may_be_empty = may_be_empty;
  loop_in_graph(interpreter, test, parts);
}

}  // namespace janus::frontend
