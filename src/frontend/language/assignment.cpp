// One case a kind of target; the parts of a target are evaluated when it is assigned to.
#include "frontend/language/assignment.h"

#include "frontend/control/run_time_items.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/language/evaluation.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/make.h"

namespace janus::frontend {

using syntax::ExpressionKind;

namespace {

/// (a, *b, c) = value
void unpack(Interpreter& interpreter, const std::vector<syntax::Expression*>& targets,
            const Value& value) {
  size_t star = targets.size();
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i]->kind == ExpressionKind::Starred) star = i;
  bool has_star = star < targets.size();
  const auto* met = has_star ? nullptr : as<RuntimeObject>(value);
  std::vector<Value> elements = met != nullptr
                                    ? run_time_elements(interpreter, *met, targets.size())
                                    : elements_of(interpreter, value);
  size_t least = has_star ? targets.size() - 1 : targets.size();
  if (elements.size() < least || (!has_star && elements.size() > least))
    raise(interpreter, PyExc_ValueError,
          cat("ValueError: ", elements.size(), " values to unpack into ", least));
  size_t surplus = elements.size() - least;
  for (size_t i = 0, next = 0; i < targets.size(); ++i) {
    if (i != star) {
      assign(interpreter, *targets[i], elements[next++]);
      continue;
    }
    auto first = elements.begin() + static_cast<std::ptrdiff_t>(next);
    auto rest = make_list({first, first + static_cast<std::ptrdiff_t>(surplus)});
    next += surplus;
    assign(interpreter, *syntax::as<syntax::Starred>(targets[i]).value, rest);
  }
}

}  // namespace

void assign(Interpreter& interpreter, const syntax::Expression& target, const Value& value) {
  interpreter.at(target);
  switch (target.kind) {
    case ExpressionKind::Name: {
      const auto& name = syntax::as<syntax::Name>(&target);
      if (auto* tensor = as<Tensor>(value);
          tensor != nullptr && tensor->source == nullptr && tensor->value->name.empty())
        tensor->value->name = name.id;
      interpreter.write_name(name.id, value);
      return;
    }
    case ExpressionKind::Attribute: {
      const auto& node = syntax::as<syntax::Attribute>(&target);
      Value object = evaluate(interpreter, *node.value);
      interpreter.at(target);
      write_attribute(interpreter, object, interpreter.mangled(node.attr), value);
      return;
    }
    case ExpressionKind::Subscript: {
      const auto& node = syntax::as<syntax::Subscript>(&target);
      Value object = evaluate(interpreter, *node.value);
      Value key = evaluate(interpreter, *node.slice);
      interpreter.at(target);
      write_subscript(interpreter, object, key, value);
      return;
    }
    case ExpressionKind::Tuple:
      return unpack(interpreter, syntax::as<syntax::Tuple>(&target).elts, value);
    case ExpressionKind::List:
      return unpack(interpreter, syntax::as<syntax::List>(&target).elts, value);
    default:
      TORCHJANUS_CHECK(false, "assign: Python's grammar has no such target");
  }
}

}  // namespace janus::frontend
