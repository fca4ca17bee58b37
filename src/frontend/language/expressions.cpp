// Implements evaluate(): one function a kind of expression. Operands are evaluated left to right;
// the span is set again after them, so that nodes and refusals name the expression that needs them.
#include <optional>

#include "frontend/control/branches.h"
#include "frontend/control/run_time_items.h"
#include "frontend/core/keys.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/language/arguments.h"
#include "frontend/language/assignment.h"
#include "frontend/language/comparison.h"
#include "frontend/language/comprehensions.h"
#include "frontend/language/conditions.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/functions.h"
#include "frontend/language/generators.h"
#include "frontend/language/operators.h"
#include "frontend/language/strings.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/run_time_attributes.h"
#include "frontend/objects/sets.h"
#include "frontend/objects/subscripts.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/make.h"
#include "frontend/values/truth.h"
#include "ops/list.h"
#include "python/version.h"
#include "syntax/folded_sets.h"

namespace janus::frontend {

using python::Object;
using syntax::ExpressionKind;

namespace {

/// A value, and its truth where Python has taken it on the way.
struct Asked {
  Value value;
  std::optional<bool> truth;
};

Asked asked_operand(Interpreter& interpreter, const syntax::Expression& operand);

/// The operands from `index` on.
Asked evaluate_bool_op(Interpreter& interpreter, const syntax::BoolOp& expression, size_t index) {
  const syntax::Expression& operand = *expression.values[index];
  const Asked first = asked_operand(interpreter, operand);
  if (index + 1 == expression.values.size()) return first;
  interpreter.at(operand);
  const Value& value = first.value;
  bool stop_at = expression.op == syntax::BoolOperator::Or;
  Truth truth = first.truth ? Truth{.known = first.truth} : truth_of(interpreter, value);
  if (!truth.known && takes_both(interpreter, operand.fact, truth)) {
    auto stop = [&] { return value; };
    auto go_on = [&] { return evaluate_bool_op(interpreter, expression, index + 1).value; };
    return {stop_at ? choose(interpreter, truth, operand.fact, stop, go_on)
                    : choose(interpreter, truth, operand.fact, go_on, stop),
            std::nullopt};
  }
  bool outcome =
      truth.known ? *truth.known : interpreter.follow(truth.flag, truth.example, operand.fact);
  if (outcome == stop_at) return {value, outcome};
  return evaluate_bool_op(interpreter, expression, index + 1);
}

/// The operand of `and` or `or`. Of one that is such an operation itself, the compiler may take the
/// truth from what the inner operation has asked.
Asked asked_operand(Interpreter& interpreter, const syntax::Expression& operand) {
  const auto* inner = python::kTakesTruthOnce ? syntax::try_as<syntax::BoolOp>(&operand) : nullptr;
  if (inner == nullptr) return {evaluate(interpreter, operand), std::nullopt};
  interpreter.at(operand);
  const Asked asked = evaluate_bool_op(interpreter, *inner, 0);
  return {refreshed(interpreter, narrowed(interpreter, asked.value)), asked.truth};
}

/// Compares `left` with the comparators from `index` on. The profile does not count whether the
/// next comparator is evaluated: both sides are taken.
Value evaluate_compare(Interpreter& interpreter, const syntax::Compare& expression,
                       const Value& left, size_t index) {
  Value right = evaluate(interpreter, *expression.comparators[index]);
  interpreter.at(expression);
  Value result = compare_remainders(interpreter, expression.ops[index], left, right);
  if (result == nullptr) result = compare(interpreter, expression.ops[index], left, right);
  if (index + 1 == expression.ops.size()) return result;
  const Truth holds = truth_of(interpreter, result);
  auto stop = [&] { return result; };
  auto go_on = [&] { return evaluate_compare(interpreter, expression, right, index + 1); };
  if (!holds.known && expression.fact >= 0 && may_merge(interpreter, expression.fact))
    return choose(interpreter, holds, expression.fact, go_on, stop);
  const bool outcome =
      holds.known ? *holds.known : interpreter.follow(holds.flag, holds.example, expression.fact);
  return outcome ? go_on() : result;
}

std::vector<Value> evaluate_elements(Interpreter& interpreter,
                                     const std::vector<syntax::Expression*>& expressions) {
  std::vector<Value> elements;
  for (const syntax::Expression* expression : expressions) {
    if (const auto* starred = syntax::try_as<syntax::Starred>(expression)) {
      for (Value& element : elements_of(interpreter, evaluate(interpreter, *starred->value)))
        elements.push_back(std::move(element));
    } else {
      elements.push_back(evaluate(interpreter, *expression));
    }
  }
  return elements;
}

void set_item(Interpreter& interpreter, Dictionary& dictionary, const Value& key, Value value) {
  Object object = key_object(interpreter, key);
  for (auto& [existing, element] : dictionary.items) {
    if (same_key(interpreter, existing.get(), object.get())) {
      element = std::move(value);
      return;
    }
  }
  dictionary.items.emplace_back(std::move(object), std::move(value));
}

Value evaluate_dict(Interpreter& interpreter, const syntax::Dict& expression) {
  auto dictionary = std::make_shared<Dictionary>();
  for (size_t i = 0; i < expression.keys.size(); ++i) {
    if (expression.keys[i] == nullptr) {
      Value other = opened(interpreter, evaluate(interpreter, *expression.values[i]));
      const auto* items = as<Dictionary>(other);
      if (items == nullptr)
        interpreter.refuse(ReasonCode::expression, "** of an object that is not a dict");
      for (const auto& [key, value] : items->items)
        set_item(interpreter, *dictionary, interpreter.constant(key), value);
      continue;
    }
    Value key = evaluate(interpreter, *expression.keys[i]);
    set_item(interpreter, *dictionary, key, evaluate(interpreter, *expression.values[i]));
  }
  return dictionary;
}

std::shared_ptr<SetValue> make_set(Interpreter& interpreter, const std::vector<Value>& elements) {
  auto set = std::make_shared<SetValue>();
  for (const Value& each : elements) {
    Value element = set_element(interpreter, each);
    if (!holds(interpreter, set->elements, element)) set->elements.push_back(std::move(element));
  }
  // CPython copies larger displays from a frozenset, whose table has another size.
  set->only_grew = set->elements.size() <= 4;
  return set;
}

/// Whether a set that gets the elements one by one has this order.
bool is_order_of_growth(PyObject* order, const SetValue& set) {
  const Object grown = python::check(PySet_New(nullptr));
  for (const Value& element : set.elements)
    if (known_object(element) == nullptr || PySet_Add(grown.get(), known_object(element)) < 0)
      return false;
  return std::ranges::equal(
      python::elements(order), python::elements(grown.get()),
      [](const Object& a, const Object& b) { return python::equal(a.get(), b.get()); });
}

/// CPython copies a display of three or more constants from a frozenset of its code.
Value evaluate_set(Interpreter& interpreter, const syntax::Set& display) {
  const auto set = make_set(interpreter, evaluate_elements(interpreter, display.elts));
  if (set->elements.size() < 3) return set;
  const Object& code = interpreter.frame().code->facts_key;
  if (const Object folded = syntax::folded_set(display, code.get()))
    set->only_grew = set->only_grew && is_order_of_growth(folded.get(), *set);
  return set;
}

template <class Comprehension>
ElementMaker elements_by(Interpreter& interpreter, const Comprehension& expression) {
  return {expression.generators, expression.scope,
          [&interpreter, &expression] { return evaluate(interpreter, *expression.elt); }};
}

Value evaluate_dict_comprehension(Interpreter& interpreter, const syntax::DictComp& expression) {
  const auto pair = [&] {
    Value key = evaluate(interpreter, *expression.key);
    return make_tuple({key, evaluate(interpreter, *expression.value)});
  };
  auto dictionary = std::make_shared<Dictionary>();
  const auto pairs = list_of_elements(interpreter, {expression.generators, expression.scope, pair},
                                      /*may_roll=*/false);
  for (const Value& each : pairs->elements.known()) {
    const auto& parts = as<Sequence>(each)->elements;
    set_item(interpreter, *dictionary, parts[0], parts[1]);
  }
  return dictionary;
}

Value evaluate_slice(Interpreter& interpreter, const syntax::Slice& expression) {
  auto part = [&](const syntax::Expression* bound) {
    return bound == nullptr ? interpreter.none() : evaluate(interpreter, *bound);
  };
  auto slice = std::make_shared<SliceValue>();
  slice->start = part(expression.lower);
  slice->stop = part(expression.upper);
  slice->step = part(expression.step);
  return slice;
}

/// `not x` where its value is used: a flag, whatever outcomes the profile counted.
Value evaluate_not(Interpreter& interpreter, const syntax::Expression& expression) {
  int fact = expression.fact;
  Truth truth = evaluate_truth(interpreter, expression, fact);
  if (truth.known) return interpreter.boolean(*truth.known);
  return interpreter.number(truth.flag, truth.example);
}

void yield_value(const Frames& frames, const Value& value) {
  if (!frames.frame().at_yield) frames.refuse(ReasonCode::generator, frames.frame().name);
  frames.frame().at_yield(value);
}

Value evaluate_call(Interpreter& interpreter, const syntax::Call& expression) {
  Value callee = evaluate(interpreter, *expression.func);
  if (Value result = call_with_elements(interpreter, callee, expression)) return result;
  CallArguments arguments = evaluate_arguments(interpreter, expression);
  interpreter.at(expression);
  interpreter.check_size();
  return call(interpreter, callee, arguments);
}

/// Adds the classes that the profile saw. An object of a list may have been made before anything
/// was known of the list's elements.
Value with_seen_classes(const Frames& frames, Value value, int fact) {
  const speculate::NodeFact* seen = frames.fact(fact);
  if (auto* object = as<RuntimeObject>(value); object != nullptr && seen != nullptr)
    object->classes = united(std::move(object->classes), seen->value.classes());
  return value;
}

Value evaluate_attribute(Interpreter& interpreter, const syntax::Attribute& node) {
  Value value = evaluate(interpreter, *node.value);
  interpreter.at(node);
  if (auto object = shared_as<RuntimeObject>(value)) {
    Value found =
        run_time_attribute(interpreter, object, interpreter.mangled(node.attr), node.fact);
    if (found == nullptr)
      interpreter.refuse(ReasonCode::would_raise,
                         cat("AttributeError: no object has the attribute ", node.attr));
    return found;
  }
  return attribute(interpreter, value, interpreter.mangled(node.attr));
}

Value evaluate_subscript(Interpreter& interpreter, const syntax::Subscript& node) {
  Value value = evaluate(interpreter, *node.value);
  Value key = evaluate(interpreter, *node.slice);
  interpreter.at(node);
  if (const auto* object = as<RuntimeObject>(value)) {
    const speculate::NodeFact* seen = interpreter.fact(node.fact);
    return run_time_item(interpreter, *object, key, seen == nullptr ? nullptr : &seen->value,
                         node.fact);
  }
  if (const auto* known = as<Known>(value)) {
    if (Value item = varying_item(interpreter, *known, key, node.fact)) return item;
    if (Value part = varying_part(interpreter, *known, key, node.fact)) return part;
  }
  return subscript(interpreter, value, key);
}

Value evaluate_binary(Interpreter& interpreter, const syntax::BinOp& node) {
  Value left = evaluate(interpreter, *node.left);
  Value right = evaluate(interpreter, *node.right);
  interpreter.at(node);
  return binary(interpreter, node.op, left, right);
}

Value evaluate_unary(Interpreter& interpreter, const syntax::UnaryOp& node) {
  if (node.op == syntax::UnaryOperator::Not) return evaluate_not(interpreter, node);
  Value operand = evaluate(interpreter, *node.operand);
  interpreter.at(node);
  return unary(interpreter, node.op, operand);
}

Value evaluate_conditional(Interpreter& interpreter, const syntax::IfExp& node) {
  int fact = node.fact;
  Truth truth = evaluate_truth(interpreter, *node.test, fact);
  auto body = [&] { return evaluate(interpreter, *node.body); };
  auto orelse = [&] { return evaluate(interpreter, *node.orelse); };
  if (!truth.known && takes_both(interpreter, fact, truth))
    return choose(interpreter, truth, fact, body, orelse);
  bool side = truth.known ? *truth.known : interpreter.follow(truth.flag, truth.example, fact);
  return side ? body() : orelse();
}

Value evaluate_named(Interpreter& interpreter, const syntax::NamedExpr& node) {
  Value value = evaluate(interpreter, *node.value);
  assign(interpreter, *node.target, value);
  return value;
}

Value evaluate_lambda(Interpreter& interpreter, const syntax::Lambda& node) {
  return make_closure(interpreter, "<lambda>", node.args, node.scope, nullptr, node.body);
}

Value evaluate_set_comprehension(Interpreter& interpreter, const syntax::SetComp& node) {
  const ElementMaker maker = elements_by(interpreter, node);
  return make_set(interpreter, list_of_elements(interpreter, maker, false)->elements);
}

Value evaluate_generator(Interpreter& interpreter, const syntax::GeneratorExp& node) {
  return generate_elements(interpreter, node.generators, node.scope,
                           [&interpreter, &node] { return evaluate(interpreter, *node.elt); });
}

Value evaluate_formatted(Interpreter& interpreter, const syntax::FormattedValue& node) {
  Value value = evaluate(interpreter, *node.value);
  Value spec = node.format_spec == nullptr ? nullptr : evaluate(interpreter, *node.format_spec);
  return format_value(interpreter, value, node.conversion, spec);
}

Value evaluate_yield(Interpreter& interpreter, const syntax::Yield& node) {
  Value value = node.value == nullptr ? interpreter.none() : evaluate(interpreter, *node.value);
  yield_value(interpreter, value);
  return interpreter.none();
}

Value evaluate_yield_from(Interpreter& interpreter, const syntax::YieldFrom& node) {
  const auto give = [&](const Value& value) { yield_value(interpreter, value); };
  if (Value returned = for_each_yielded(interpreter, *node.value, give)) return returned;
  auto iterator = iterate(interpreter, evaluate(interpreter, *node.value));
  while (Value value = iterator->next()) yield_value(interpreter, value);
  return iterator->returned != nullptr ? iterator->returned : interpreter.none();
}

Value evaluate_node(Interpreter& interpreter, const syntax::Expression& expression) {
  using namespace syntax;  // NOLINT: the node classes of this one function
  interpreter.at(expression);
  switch (expression.kind) {
    case ExpressionKind::Constant:
      return interpreter.constant(syntax::as<Constant>(&expression).value);
    case ExpressionKind::Name:
      return run_time_number(interpreter, interpreter.read_name(syntax::as<Name>(&expression).id));
    case ExpressionKind::Attribute:
      return evaluate_attribute(interpreter, syntax::as<Attribute>(&expression));
    case ExpressionKind::Subscript:
      return evaluate_subscript(interpreter, syntax::as<Subscript>(&expression));
    case ExpressionKind::Call:
      return with_seen_classes(interpreter,
                               evaluate_call(interpreter, syntax::as<syntax::Call>(&expression)),
                               expression.fact);
    case ExpressionKind::BinOp:
      return evaluate_binary(interpreter, syntax::as<BinOp>(&expression));
    case ExpressionKind::UnaryOp:
      return evaluate_unary(interpreter, syntax::as<UnaryOp>(&expression));
    case ExpressionKind::BoolOp:
      return evaluate_bool_op(interpreter, syntax::as<BoolOp>(&expression), 0).value;
    case ExpressionKind::Compare: {
      const auto& node = syntax::as<Compare>(&expression);
      return evaluate_compare(interpreter, node, evaluate(interpreter, *node.left), 0);
    }
    case ExpressionKind::IfExp:
      return evaluate_conditional(interpreter, syntax::as<IfExp>(&expression));
    case ExpressionKind::NamedExpr:
      return evaluate_named(interpreter, syntax::as<NamedExpr>(&expression));
    case ExpressionKind::Lambda:
      return evaluate_lambda(interpreter, syntax::as<Lambda>(&expression));
    case ExpressionKind::Tuple:
      return make_tuple(evaluate_elements(interpreter, syntax::as<Tuple>(&expression).elts));
    case ExpressionKind::List:
      return make_list(evaluate_elements(interpreter, syntax::as<List>(&expression).elts));
    case ExpressionKind::Set:
      return evaluate_set(interpreter, syntax::as<Set>(&expression));
    case ExpressionKind::Dict:
      return evaluate_dict(interpreter, syntax::as<Dict>(&expression));
    case ExpressionKind::ListComp:
      return list_of_elements(interpreter,
                              elements_by(interpreter, syntax::as<ListComp>(&expression)), true);
    case ExpressionKind::SetComp:
      return evaluate_set_comprehension(interpreter, syntax::as<SetComp>(&expression));
    case ExpressionKind::DictComp:
      return evaluate_dict_comprehension(interpreter, syntax::as<DictComp>(&expression));
    case ExpressionKind::GeneratorExp:
      return evaluate_generator(interpreter, syntax::as<GeneratorExp>(&expression));
    case ExpressionKind::JoinedStr:
      return join_formatted(interpreter, syntax::as<JoinedStr>(&expression));
    case ExpressionKind::FormattedValue:
      return evaluate_formatted(interpreter, syntax::as<FormattedValue>(&expression));
    case ExpressionKind::Slice:
      return evaluate_slice(interpreter, syntax::as<Slice>(&expression));
    case ExpressionKind::Yield:
      return evaluate_yield(interpreter, syntax::as<Yield>(&expression));
    case ExpressionKind::YieldFrom:
      return evaluate_yield_from(interpreter, syntax::as<YieldFrom>(&expression));
    case ExpressionKind::Starred:
    case ExpressionKind::Await:
      break;
  }
  interpreter.refuse(ReasonCode::expression, syntax::name(expression.kind));
}

}  // namespace

Value evaluate(Interpreter& interpreter, const syntax::Expression& expression) {
  return refreshed(interpreter, narrowed(interpreter, evaluate_node(interpreter, expression)));
}

}  // namespace janus::frontend
