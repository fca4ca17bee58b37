// Python's abstract syntax (3.11 to 3.14), one struct a node class of the `ast` module, same field
// names (but for C++ keywords and clashes, which get a trailing underscore).
//
// Nodes are plain data owned by their Tree. `kind` says which struct a node is; use
// `as<Name>(node)` after a switch on it. Every expression and statement has a `fact` number, dense
// within its Tree: the key under which the profiler's facts about it are kept.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "graph/source_span.h"
#include "python/object.h"

namespace janus::syntax {

using graph::SourceSpan;
using Identifier = std::string;

// clang-format off
#define TORCHJANUS_EXPRESSIONS(X)                                                                    \
  X(BoolOp) X(NamedExpr) X(BinOp) X(UnaryOp) X(Lambda) X(IfExp) X(Dict) X(Set) X(ListComp) X(SetComp) \
  X(DictComp) X(GeneratorExp) X(Await) X(Yield) X(YieldFrom) X(Compare) X(Call) X(FormattedValue)    \
  X(JoinedStr) X(Constant) X(Attribute) X(Subscript) X(Starred) X(Name) X(List) X(Tuple) X(Slice)
#define TORCHJANUS_STATEMENTS(X)                                                                     \
  X(FunctionDef) X(AsyncFunctionDef) X(ClassDef) X(Return) X(Delete) X(Assign) X(TypeAlias)          \
  X(AugAssign) X(AnnAssign) X(For) X(AsyncFor) X(While) X(If) X(With) X(AsyncWith) X(Match) X(Raise) \
  X(Try) X(TryStar) X(Assert) X(Import) X(ImportFrom) X(Global) X(Nonlocal) X(Expr) X(Pass) X(Break) \
  X(Continue)
#define TORCHJANUS_PATTERNS(X)                                                                       \
  X(MatchValue) X(MatchSingleton) X(MatchSequence) X(MatchMapping) X(MatchClass) X(MatchStar)        \
  X(MatchAs) X(MatchOr)
// clang-format on

#define TORCHJANUS_NAME(name) name,
enum class ExpressionKind { TORCHJANUS_EXPRESSIONS(TORCHJANUS_NAME) };
enum class StatementKind { TORCHJANUS_STATEMENTS(TORCHJANUS_NAME) };
enum class PatternKind { TORCHJANUS_PATTERNS(TORCHJANUS_NAME) };
#undef TORCHJANUS_NAME

const char* name(ExpressionKind kind);
const char* name(StatementKind kind);
const char* name(PatternKind kind);

enum class Context { Load, Store, Del };
enum class BoolOperator { And, Or };
enum class Operator {
  Add,
  Sub,
  Mult,
  MatMult,
  Div,
  Mod,
  Pow,
  LShift,
  RShift,
  BitOr,
  BitXor,
  BitAnd,
  FloorDiv
};
enum class UnaryOperator { Invert, Not, UAdd, USub };
enum class CompareOperator { Eq, NotEq, Lt, LtE, Gt, GtE, Is, IsNot, In, NotIn };

/// The symbol Python writes: "+", "//", "not in".
const char* symbol(Operator op);
const char* symbol(UnaryOperator op);
const char* symbol(CompareOperator op);

struct Node {
  virtual ~Node() = default;
  SourceSpan span;
};

struct Expression : Node {
  explicit Expression(ExpressionKind kind) : kind(kind) {}
  const ExpressionKind kind;
  int fact = -1;
};
struct Statement : Node {
  explicit Statement(StatementKind kind) : kind(kind) {}
  const StatementKind kind;
  int fact = -1;
};
struct Pattern : Node {
  explicit Pattern(PatternKind kind) : kind(kind) {}
  const PatternKind kind;
};

using Body = std::vector<Statement*>;

// --- parts of nodes -----------------------------------------------------------------------------
struct Argument : Node {
  Identifier arg;
  Expression* annotation = nullptr;
};
struct Arguments {
  std::vector<Argument*> posonlyargs, args;
  Argument* vararg = nullptr;
  std::vector<Argument*> kwonlyargs;
  std::vector<Expression*> kw_defaults;  ///< as long as kwonlyargs; null where there is no default
  Argument* kwarg = nullptr;
  std::vector<Expression*> defaults;  ///< of the last posonlyargs + args
};
struct Keyword : Node {
  Identifier arg;  ///< empty for `**value`
  Expression* value = nullptr;
};
struct Alias : Node {
  Identifier name, asname;
};
struct WithItem {
  Expression* context_expr = nullptr;
  Expression* optional_vars = nullptr;
};
struct Comprehension {
  Expression* target = nullptr;
  Expression* iter = nullptr;
  std::vector<Expression*> ifs;
  bool is_async = false;
};
struct ExceptHandler : Node {
  Expression* type = nullptr;
  Identifier name;
  Body body;
};
struct MatchCase {
  Pattern* pattern = nullptr;
  Expression* guard = nullptr;
  Body body;
};

#define TORCHJANUS_EXPRESSION(NAME)                     \
  struct NAME final : Expression {                      \
    static constexpr auto kKind = ExpressionKind::NAME; \
    NAME() : Expression(kKind) {}
#define TORCHJANUS_STATEMENT(NAME)                     \
  struct NAME final : Statement {                      \
    static constexpr auto kKind = StatementKind::NAME; \
    NAME() : Statement(kKind) {}
#define TORCHJANUS_PATTERN(NAME)                     \
  struct NAME final : Pattern {                      \
    static constexpr auto kKind = PatternKind::NAME; \
    NAME() : Pattern(kKind) {}
// clang-format off

// --- expressions ---------------------------------------------------------------------------------------
TORCHJANUS_EXPRESSION(BoolOp)     BoolOperator op = BoolOperator::And; std::vector<Expression*> values; };
TORCHJANUS_EXPRESSION(NamedExpr)  Expression* target = nullptr; Expression* value = nullptr; };
TORCHJANUS_EXPRESSION(BinOp)      Expression* left = nullptr; Operator op = Operator::Add; Expression* right = nullptr; };
TORCHJANUS_EXPRESSION(UnaryOp)    UnaryOperator op = UnaryOperator::Not; Expression* operand = nullptr; };
TORCHJANUS_EXPRESSION(Lambda)     Arguments args; Expression* body = nullptr; struct Scope* scope = nullptr; };
TORCHJANUS_EXPRESSION(IfExp)      Expression* test = nullptr; Expression* body = nullptr; Expression* orelse = nullptr; };
TORCHJANUS_EXPRESSION(Dict)       std::vector<Expression*> keys; /* null: ** */ std::vector<Expression*> values; };
TORCHJANUS_EXPRESSION(Set)        std::vector<Expression*> elts; };
TORCHJANUS_EXPRESSION(ListComp)   Expression* elt = nullptr; std::vector<Comprehension> generators; struct Scope* scope = nullptr; };
TORCHJANUS_EXPRESSION(SetComp)    Expression* elt = nullptr; std::vector<Comprehension> generators; struct Scope* scope = nullptr; };
TORCHJANUS_EXPRESSION(DictComp)   Expression* key = nullptr; Expression* value = nullptr; std::vector<Comprehension> generators; struct Scope* scope = nullptr; };
TORCHJANUS_EXPRESSION(GeneratorExp) Expression* elt = nullptr; std::vector<Comprehension> generators; struct Scope* scope = nullptr; };
TORCHJANUS_EXPRESSION(Await)      Expression* value = nullptr; };
TORCHJANUS_EXPRESSION(Yield)      Expression* value = nullptr; };
TORCHJANUS_EXPRESSION(YieldFrom)  Expression* value = nullptr; };
TORCHJANUS_EXPRESSION(Compare)    Expression* left = nullptr; std::vector<CompareOperator> ops; std::vector<Expression*> comparators; };
TORCHJANUS_EXPRESSION(Call)       Expression* func = nullptr; std::vector<Expression*> args; std::vector<Keyword*> keywords; };
TORCHJANUS_EXPRESSION(FormattedValue) Expression* value = nullptr; int conversion = -1; Expression* format_spec = nullptr; };
TORCHJANUS_EXPRESSION(JoinedStr)  std::vector<Expression*> values; };
TORCHJANUS_EXPRESSION(Constant)   python::Object value; };
TORCHJANUS_EXPRESSION(Attribute)  Expression* value = nullptr; Identifier attr; Context ctx = Context::Load; };
TORCHJANUS_EXPRESSION(Subscript)  Expression* value = nullptr; Expression* slice = nullptr; Context ctx = Context::Load; };
TORCHJANUS_EXPRESSION(Starred)    Expression* value = nullptr; Context ctx = Context::Load; };
TORCHJANUS_EXPRESSION(Name)       Identifier id; Context ctx = Context::Load; };
TORCHJANUS_EXPRESSION(List)       std::vector<Expression*> elts; Context ctx = Context::Load; };
TORCHJANUS_EXPRESSION(Tuple)      std::vector<Expression*> elts; Context ctx = Context::Load; };
TORCHJANUS_EXPRESSION(Slice)      Expression* lower = nullptr; Expression* upper = nullptr; Expression* step = nullptr; };

// --- statements ----------------------------------------------------------------------------------------
TORCHJANUS_STATEMENT(FunctionDef) Identifier name_; Arguments args; Body body; std::vector<Expression*> decorator_list; Expression* returns = nullptr; struct Scope* scope = nullptr; };
TORCHJANUS_STATEMENT(AsyncFunctionDef) Identifier name_; Arguments args; Body body; std::vector<Expression*> decorator_list; Expression* returns = nullptr; struct Scope* scope = nullptr; };
TORCHJANUS_STATEMENT(ClassDef)    Identifier name_; std::vector<Expression*> bases; std::vector<Keyword*> keywords; Body body; std::vector<Expression*> decorator_list; struct Scope* scope = nullptr; };
TORCHJANUS_STATEMENT(Return)      Expression* value = nullptr; };
TORCHJANUS_STATEMENT(Delete)      std::vector<Expression*> targets; };
TORCHJANUS_STATEMENT(Assign)      std::vector<Expression*> targets; Expression* value = nullptr; };
TORCHJANUS_STATEMENT(TypeAlias)   Expression* name_ = nullptr; Expression* value = nullptr; };
TORCHJANUS_STATEMENT(AugAssign)   Expression* target = nullptr; Operator op = Operator::Add; Expression* value = nullptr; };
TORCHJANUS_STATEMENT(AnnAssign)   Expression* target = nullptr; Expression* annotation = nullptr; Expression* value = nullptr; bool simple = false; };
TORCHJANUS_STATEMENT(For)         Expression* target = nullptr; Expression* iter = nullptr; Body body; Body orelse; };
TORCHJANUS_STATEMENT(AsyncFor)    Expression* target = nullptr; Expression* iter = nullptr; Body body; Body orelse; };
TORCHJANUS_STATEMENT(While)       Expression* test = nullptr; Body body; Body orelse; };
TORCHJANUS_STATEMENT(If)          Expression* test = nullptr; Body body; Body orelse; };
TORCHJANUS_STATEMENT(With)        std::vector<WithItem> items; Body body; };
TORCHJANUS_STATEMENT(AsyncWith)   std::vector<WithItem> items; Body body; };
TORCHJANUS_STATEMENT(Match)       Expression* subject = nullptr; std::vector<MatchCase> cases; };
TORCHJANUS_STATEMENT(Raise)       Expression* exc = nullptr; Expression* cause = nullptr; };
TORCHJANUS_STATEMENT(Try)         Body body; std::vector<ExceptHandler*> handlers; Body orelse; Body finalbody; };
TORCHJANUS_STATEMENT(TryStar)     Body body; std::vector<ExceptHandler*> handlers; Body orelse; Body finalbody; };
TORCHJANUS_STATEMENT(Assert)      Expression* test = nullptr; Expression* msg = nullptr; };
TORCHJANUS_STATEMENT(Import)      std::vector<Alias*> names; };
TORCHJANUS_STATEMENT(ImportFrom)  Identifier module; std::vector<Alias*> names; int level = 0; };
TORCHJANUS_STATEMENT(Global)      std::vector<Identifier> names; };
TORCHJANUS_STATEMENT(Nonlocal)    std::vector<Identifier> names; };
TORCHJANUS_STATEMENT(Expr)        Expression* value = nullptr; };
TORCHJANUS_STATEMENT(Pass)        };
TORCHJANUS_STATEMENT(Break)       };
TORCHJANUS_STATEMENT(Continue)    };

// --- patterns ------------------------------------------------------------------------------------------
TORCHJANUS_PATTERN(MatchValue)    Expression* value = nullptr; };
TORCHJANUS_PATTERN(MatchSingleton) python::Object value; };
TORCHJANUS_PATTERN(MatchSequence) std::vector<Pattern*> patterns; };
TORCHJANUS_PATTERN(MatchMapping)  std::vector<Expression*> keys; std::vector<Pattern*> patterns; Identifier rest; };
TORCHJANUS_PATTERN(MatchClass)    Expression* cls = nullptr; std::vector<Pattern*> patterns; std::vector<Identifier> kwd_attrs; std::vector<Pattern*> kwd_patterns; };
TORCHJANUS_PATTERN(MatchStar)     Identifier name; };
TORCHJANUS_PATTERN(MatchAs)       Pattern* pattern = nullptr; Identifier name; };
TORCHJANUS_PATTERN(MatchOr)       std::vector<Pattern*> patterns; };
// clang-format on
#undef TORCHJANUS_EXPRESSION
#undef TORCHJANUS_STATEMENT
#undef TORCHJANUS_PATTERN

/// `node` as the struct that its kind says; checked.
template <class T, class Base>
const T& as(const Base* node) {
  TORCHJANUS_CHECK(node != nullptr && node->kind == T::kKind, "syntax node is of another kind");
  return static_cast<const T&>(*node);
}
template <class T, class Base>
const T* try_as(const Base* node) {
  return node != nullptr && node->kind == T::kKind ? static_cast<const T*>(node) : nullptr;
}

/// Owns the nodes and scopes of one function, lambda or loop body (its nested functions included).
class Tree {
 public:
  /// A function: FunctionDef, AsyncFunctionDef (`function`) or Lambda (`lambda`); or a bare run of
  /// statements of a script (`body`), which read and write variables of the frame they stand in.
  const Statement* function = nullptr;
  const Lambda* lambda = nullptr;
  Body body;                       ///< of the function, or the bare statements; a lambda has none
  Arguments* arguments = nullptr;  ///< null for bare statements
  struct Scope* scope = nullptr;   ///< the function's own scope
  std::string name;                ///< qualified name, for reports
  std::shared_ptr<const std::string> file;
  std::string class_name;  ///< innermost class around it in the source; empty: none
  /// Of statements: they end the function, so that nobody reads its variables afterwards.
  bool ends_function = false;
  int fact_count = 0;  ///< facts are numbered 0 .. fact_count-1

  /// A name or attribute as the compiler takes it here: `__x` inside class C is `_C__x`.
  std::string mangle(const std::string& identifier) const;

  template <class T>
  T* make() {
    auto owned = std::make_unique<T>();
    T* result = owned.get();
    nodes_.push_back(std::move(owned));
    return result;
  }
  struct Scope* make_scope();
  ~Tree();
  Tree();

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<struct Scope>> scopes_;
};

}  // namespace janus::syntax
