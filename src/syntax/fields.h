// The fields of every node class, once: their names in Python's `ast` module and the members of the
// mirror.
//
// `each_field(node, visit)` calls `visit("left", node.left)` for each field in the order of the
// `ast` class. Conversion from and to Python, and every general walk, are visitors over it. Fields
// that we do not need are left out (type_comment, Constant.kind). So are type parameters, which
// convert.cpp refuses.
#pragma once

#include <type_traits>

#include "syntax/tree.h"

namespace janus::syntax {

#define TORCHJANUS_FIELDS(NAME)                               \
  template <class Node_, class Visit>                         \
    requires std::is_same_v<std::remove_const_t<Node_>, NAME> \
  void each_field([[maybe_unused]] Node_& node, [[maybe_unused]] Visit&& visit)
#define F(FIELD) visit(#FIELD, node.FIELD)
#define F_AS(PYTHON_NAME, FIELD) visit(PYTHON_NAME, node.FIELD)
// clang-format off

// --- parts ---------------------------------------------------------------------------------------
TORCHJANUS_FIELDS(Argument)      { F(arg); F(annotation); }
TORCHJANUS_FIELDS(Arguments)     { F(posonlyargs); F(args); F(vararg); F(kwonlyargs); F(kw_defaults); F(kwarg); F(defaults); }
TORCHJANUS_FIELDS(Keyword)       { F(arg); F(value); }
TORCHJANUS_FIELDS(Alias)         { F(name); F(asname); }
TORCHJANUS_FIELDS(WithItem)      { F(context_expr); F(optional_vars); }
TORCHJANUS_FIELDS(Comprehension) { F(target); F(iter); F(ifs); F(is_async); }
TORCHJANUS_FIELDS(ExceptHandler) { F(type); F(name); F(body); }
TORCHJANUS_FIELDS(MatchCase)     { F(pattern); F(guard); F(body); }

// --- expressions ---------------------------------------------------------------------------------
TORCHJANUS_FIELDS(BoolOp)         { F(op); F(values); }
TORCHJANUS_FIELDS(NamedExpr)      { F(target); F(value); }
TORCHJANUS_FIELDS(BinOp)          { F(left); F(op); F(right); }
TORCHJANUS_FIELDS(UnaryOp)        { F(op); F(operand); }
TORCHJANUS_FIELDS(Lambda)         { F(args); F(body); }
TORCHJANUS_FIELDS(IfExp)          { F(test); F(body); F(orelse); }
TORCHJANUS_FIELDS(Dict)           { F(keys); F(values); }
TORCHJANUS_FIELDS(Set)            { F(elts); }
TORCHJANUS_FIELDS(ListComp)       { F(elt); F(generators); }
TORCHJANUS_FIELDS(SetComp)        { F(elt); F(generators); }
TORCHJANUS_FIELDS(DictComp)       { F(key); F(value); F(generators); }
TORCHJANUS_FIELDS(GeneratorExp)   { F(elt); F(generators); }
TORCHJANUS_FIELDS(Await)          { F(value); }
TORCHJANUS_FIELDS(Yield)          { F(value); }
TORCHJANUS_FIELDS(YieldFrom)      { F(value); }
TORCHJANUS_FIELDS(Compare)        { F(left); F(ops); F(comparators); }
TORCHJANUS_FIELDS(Call)           { F(func); F(args); F(keywords); }
TORCHJANUS_FIELDS(FormattedValue) { F(value); F(conversion); F(format_spec); }
TORCHJANUS_FIELDS(JoinedStr)      { F(values); }
TORCHJANUS_FIELDS(Constant)       { F(value); }
TORCHJANUS_FIELDS(Attribute)      { F(value); F(attr); F(ctx); }
TORCHJANUS_FIELDS(Subscript)      { F(value); F(slice); F(ctx); }
TORCHJANUS_FIELDS(Starred)        { F(value); F(ctx); }
TORCHJANUS_FIELDS(Name)           { F(id); F(ctx); }
TORCHJANUS_FIELDS(List)           { F(elts); F(ctx); }
TORCHJANUS_FIELDS(Tuple)          { F(elts); F(ctx); }
TORCHJANUS_FIELDS(Slice)          { F(lower); F(upper); F(step); }

// --- statements ----------------------------------------------------------------------------------
TORCHJANUS_FIELDS(FunctionDef)      { F_AS("name", name_); F(args); F(body); F(decorator_list); F(returns); }
TORCHJANUS_FIELDS(AsyncFunctionDef) { F_AS("name", name_); F(args); F(body); F(decorator_list); F(returns); }
TORCHJANUS_FIELDS(ClassDef)         { F_AS("name", name_); F(bases); F(keywords); F(body); F(decorator_list); }
TORCHJANUS_FIELDS(Return)           { F(value); }
TORCHJANUS_FIELDS(Delete)           { F(targets); }
TORCHJANUS_FIELDS(Assign)           { F(targets); F(value); }
TORCHJANUS_FIELDS(TypeAlias)        { F_AS("name", name_); F(value); }
TORCHJANUS_FIELDS(AugAssign)        { F(target); F(op); F(value); }
TORCHJANUS_FIELDS(AnnAssign)        { F(target); F(annotation); F(value); F(simple); }
TORCHJANUS_FIELDS(For)              { F(target); F(iter); F(body); F(orelse); }
TORCHJANUS_FIELDS(AsyncFor)         { F(target); F(iter); F(body); F(orelse); }
TORCHJANUS_FIELDS(While)            { F(test); F(body); F(orelse); }
TORCHJANUS_FIELDS(If)               { F(test); F(body); F(orelse); }
TORCHJANUS_FIELDS(With)             { F(items); F(body); }
TORCHJANUS_FIELDS(AsyncWith)        { F(items); F(body); }
TORCHJANUS_FIELDS(Match)            { F(subject); F(cases); }
TORCHJANUS_FIELDS(Raise)            { F(exc); F(cause); }
TORCHJANUS_FIELDS(Try)              { F(body); F(handlers); F(orelse); F(finalbody); }
TORCHJANUS_FIELDS(TryStar)          { F(body); F(handlers); F(orelse); F(finalbody); }
TORCHJANUS_FIELDS(Assert)           { F(test); F(msg); }
TORCHJANUS_FIELDS(Import)           { F(names); }
TORCHJANUS_FIELDS(ImportFrom)       { F(module); F(names); F(level); }
TORCHJANUS_FIELDS(Global)           { F(names); }
TORCHJANUS_FIELDS(Nonlocal)         { F(names); }
TORCHJANUS_FIELDS(Expr)             { F(value); }
TORCHJANUS_FIELDS(Pass)             { }
TORCHJANUS_FIELDS(Break)            { }
TORCHJANUS_FIELDS(Continue)         { }

// --- patterns ------------------------------------------------------------------------------------
TORCHJANUS_FIELDS(MatchValue)     { F(value); }
TORCHJANUS_FIELDS(MatchSingleton) { F(value); }
TORCHJANUS_FIELDS(MatchSequence)  { F(patterns); }
TORCHJANUS_FIELDS(MatchMapping)   { F(keys); F(patterns); F(rest); }
TORCHJANUS_FIELDS(MatchClass)     { F(cls); F(patterns); F(kwd_attrs); F(kwd_patterns); }
TORCHJANUS_FIELDS(MatchStar)      { F(name); }
TORCHJANUS_FIELDS(MatchAs)        { F(pattern); F(name); }
TORCHJANUS_FIELDS(MatchOr)        { F(patterns); }
// clang-format on
#undef F
#undef F_AS
#undef TORCHJANUS_FIELDS

/// Calls `visit` with the node as the struct that its kind says.
template <class Visit>
auto with_struct(const Expression& node, Visit&& visit) {
  switch (node.kind) {
#define X(NAME)              \
  case ExpressionKind::NAME: \
    return visit(static_cast<const NAME&>(node));
    TORCHJANUS_EXPRESSIONS(X)
#undef X
  }
  TORCHJANUS_CHECK(false, "syntax: an expression of no known kind");
}
template <class Visit>
auto with_struct(const Statement& node, Visit&& visit) {
  switch (node.kind) {
#define X(NAME)             \
  case StatementKind::NAME: \
    return visit(static_cast<const NAME&>(node));
    TORCHJANUS_STATEMENTS(X)
#undef X
  }
  TORCHJANUS_CHECK(false, "syntax: a statement of no known kind");
}
template <class Visit>
auto with_struct(const Pattern& node, Visit&& visit) {
  switch (node.kind) {
#define X(NAME)           \
  case PatternKind::NAME: \
    return visit(static_cast<const NAME&>(node));
    TORCHJANUS_PATTERNS(X)
#undef X
  }
  TORCHJANUS_CHECK(false, "syntax: a pattern of no known kind");
}

}  // namespace janus::syntax
