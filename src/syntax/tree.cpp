// Names and symbols of syntax nodes, and the ownership of a tree's scopes.
#include "syntax/tree.h"

#include "syntax/scope.h"

namespace janus::syntax {

const char* name(ExpressionKind kind) {
  switch (kind) {
#define X(NAME)              \
  case ExpressionKind::NAME: \
    return #NAME;
    TORCHJANUS_EXPRESSIONS(X)
#undef X
  }
  return "?";
}

const char* name(StatementKind kind) {
  switch (kind) {
#define X(NAME)             \
  case StatementKind::NAME: \
    return #NAME;
    TORCHJANUS_STATEMENTS(X)
#undef X
  }
  return "?";
}

const char* name(PatternKind kind) {
  switch (kind) {
#define X(NAME)           \
  case PatternKind::NAME: \
    return #NAME;
    TORCHJANUS_PATTERNS(X)
#undef X
  }
  return "?";
}

const char* symbol(Operator op) {
  switch (op) {
    case Operator::Add:
      return "+";
    case Operator::Sub:
      return "-";
    case Operator::Mult:
      return "*";
    case Operator::MatMult:
      return "@";
    case Operator::Div:
      return "/";
    case Operator::Mod:
      return "%";
    case Operator::Pow:
      return "**";
    case Operator::LShift:
      return "<<";
    case Operator::RShift:
      return ">>";
    case Operator::BitOr:
      return "|";
    case Operator::BitXor:
      return "^";
    case Operator::BitAnd:
      return "&";
    case Operator::FloorDiv:
      return "//";
  }
  return "?";
}

const char* symbol(UnaryOperator op) {
  switch (op) {
    case UnaryOperator::Invert:
      return "~";
    case UnaryOperator::Not:
      return "not";
    case UnaryOperator::UAdd:
      return "+";
    case UnaryOperator::USub:
      return "-";
  }
  return "?";
}

const char* symbol(CompareOperator op) {
  switch (op) {
    case CompareOperator::Eq:
      return "==";
    case CompareOperator::NotEq:
      return "!=";
    case CompareOperator::Lt:
      return "<";
    case CompareOperator::LtE:
      return "<=";
    case CompareOperator::Gt:
      return ">";
    case CompareOperator::GtE:
      return ">=";
    case CompareOperator::Is:
      return "is";
    case CompareOperator::IsNot:
      return "is not";
    case CompareOperator::In:
      return "in";
    case CompareOperator::NotIn:
      return "not in";
  }
  return "?";
}

Tree::Tree() = default;
Tree::~Tree() = default;

Scope* Tree::make_scope() {
  scopes_.push_back(std::make_unique<Scope>());
  return scopes_.back().get();
}

std::string Tree::mangle(const std::string& identifier) const {
  return syntax::mangle(class_name, identifier);
}

}  // namespace janus::syntax
