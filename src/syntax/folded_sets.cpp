// The compiler itself folds the display. The set that the program goes through is that of its own
// code: one which was read from a file may have another order.
#include "syntax/folded_sets.h"

#include <algorithm>
#include <set>

#include "syntax/compile.h"
#include "syntax/convert.h"

namespace janus::syntax {

using python::Object;

namespace {

bool is_constant(const Expression& node) {
  switch (node.kind) {
    case ExpressionKind::Constant:
      return true;
    case ExpressionKind::UnaryOp:
      return is_constant(*as<UnaryOp>(&node).operand);
    case ExpressionKind::BinOp:
      return is_constant(*as<BinOp>(&node).left) && is_constant(*as<BinOp>(&node).right);
    case ExpressionKind::Tuple:
      return std::ranges::all_of(as<Tuple>(&node).elts,
                                 [](const Expression* each) { return is_constant(*each); });
    default:
      return false;
  }
}

Object first_frozenset(PyObject* code) {
  for (Object& constant : python::elements(python::attribute(code, "co_consts").get()))
    if (PyFrozenSet_CheckExact(constant.get())) return std::move(constant);
  return {};
}

/// `None in display`, compiled.
Object compiled(const Expression& display) {
  const SourceSpan& span = display.span;
  const Object none = AstBuilder::make("Constant", {{"value", python::none()}}, &span);
  const Object in = AstBuilder::make("In", {}, nullptr);
  const Object test =
      AstBuilder::make("Compare",
                       {{"left", none},
                        {"ops", python::list({in})},
                        {"comparators", python::list({AstBuilder().copy(display)})}},
                       &span);
  const Object whole = AstBuilder::make("Expression", {{"body", test}}, nullptr);
  static PyObject* const compile = python::import_attribute("builtins", "compile").release();
  return python::call(compile,
                      {whole.get(), python::string("<set>").get(), python::string("eval").get()});
}

/// What tells its elements from those of an equal set: {1} is equal to {True}.
std::multiset<std::string> texts_of(PyObject* elements) {
  std::multiset<std::string> texts;
  for (const Object& element : python::elements(elements))
    texts.insert(python::repr(element.get()));
  return texts;
}

/// The set among the constants of the code, and of those that it nests; null if there is none.
Object found_in(PyObject* code, const std::multiset<std::string>& texts) {
  for (const Object& constant : python::elements(python::attribute(code, "co_consts").get()))
    if (PyFrozenSet_CheckExact(constant.get()) && texts_of(constant.get()) == texts)
      return constant;
  for (const Object& nested : nested_codes(code))
    if (Object found = found_in(nested.get(), texts)) return found;
  return {};
}

}  // namespace

Object folded_set(const Expression& display, PyObject* code) {
  if (display.kind != ExpressionKind::Set) return {};
  const auto& elements = as<Set>(&display).elts;
  const auto is_folded = [](const Expression* element) { return is_constant(*element); };
  if (!std::ranges::all_of(elements, is_folded)) return {};
  Object made = first_frozenset(compiled(display).get());
  if (!made || code == nullptr || !PyCode_Check(code)) return made;
  const Object own = set_in_code(code, made.get());
  return own ? own : made;
}

Object set_in_code(PyObject* code, PyObject* set) { return found_in(code, texts_of(set)); }

}  // namespace janus::syntax
