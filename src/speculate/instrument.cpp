// How a function becomes its instrumented copy. A new `ast` is built of our tree, in which
//
//   a.b, a[i], non-local names    become  H.value(fact, a.b)
//   f(x)                          becomes H.value(fact, H.callee(fact, fact of f, f)(x))
//   tests                         become  H.taken(fact) if t else H.not_taken(fact), operands of
//                                 `and`, `or` and `not` in them likewise: the code takes the truth
//   x and y (as a value)          becomes y if H.and_operand(fact, x) else H.kept()
//   not x (as a value)            becomes not H.test(fact, x)
//   for i in xs                   becomes for i in H.loop(fact, xs, fact of xs), with the frozenset
//                                 that the compiler makes of a set of constants there
//   while t: ...                  becomes H.enter(fact); while H.again(fact) if t
//                                         else H.done(fact):
//
// where H is a placeholder that becomes a constant of the code after compilation, so that no scope
// of the program gets a new name. All nodes keep their places, so tracebacks are the program's own.
// Decorators, defaults, annotations, classes, patterns, nested generators and coroutines stay as
// they are. The definition of the copy is compiled but never run; its code is extracted and joined
// with the closure of the original.
#include "speculate/instrument.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/options.h"
#include "python/gc_pause.h"
#include "python/version.h"
#include "speculate/hooks.h"
#include "syntax/compile.h"
#include "syntax/convert.h"
#include "syntax/fields.h"
#include "syntax/folded_sets.h"
#include "syntax/scope.h"
#include "syntax/source.h"

namespace janus::speculate {
namespace {

using python::Object;
using syntax::as;
using syntax::AstBuilder;
using syntax::Expression;
using syntax::ExpressionKind;
using syntax::SourceSpan;
using syntax::Statement;
using syntax::StatementKind;

class Instrumenter final : public AstBuilder {
 public:
  /// `constants`: a dict of what stands for what in the code; sets are added. `original`: the code
  /// of which a copy is made, or null.
  Instrumenter(const syntax::Tree& tree, std::string placeholder, std::vector<std::string> imports,
               PyObject* constants, PyObject* original)
      : tree_(tree),
        placeholder_(std::move(placeholder)),
        imports_(std::move(imports)),
        constants_(constants),
        original_(original),
        scope_(tree.scope) {}

  Object expression(const Expression* node) override;
  Object pattern(const syntax::Pattern* node) override { return plain_.pattern(node); }
  void statement(const Statement* node, PyObject* list) override;

 private:
  // --- calls of hooks
  Object hook(const char* method, const std::vector<Object>& arguments, const SourceSpan& span) {
    // The place of the method is the start of the span only. If an attribute ended on another line
    // than its call begins, the compiler would move the call there.
    const SourceSpan start = {nullptr, span.line, span.column, span.line, span.column};
    const Object hooks = make("Constant", {{"value", python::string(placeholder_)}}, &start);
    const Object function = make(
        "Attribute", {{"value", hooks}, {"attr", python::string(method)}, {"ctx", load()}}, &start);
    return make(
        "Call",
        {{"func", function}, {"args", python::list(arguments)}, {"keywords", python::list({})}},
        &span);
  }
  static Object fact(int number, const SourceSpan& span) {
    return make("Constant", {{"value", python::integer(number)}}, &span);
  }
  static Object load() {
    static PyObject* const context = make("Load", {}, nullptr).release();
    return Object::borrow(context);
  }
  Object value(const Expression& node, Object result) {
    return hook(hook::value, {fact(node.fact, node.span), std::move(result)}, node.span);
  }
  static Object make_bool_op(syntax::BoolOperator op, const std::vector<Object>& operands,
                             const SourceSpan& span) {
    const char* type = op == syntax::BoolOperator::And ? "And" : "Or";
    return make("BoolOp", {{"op", make(type, {}, nullptr)}, {"values", python::list(operands)}},
                &span);
  }
  static Object fact(const Expression& node) { return fact(node.fact, node.span); }

  // --- tests
  /// How the outcome of a test is noted: the hooks for true and false, and a second fact (or -1).
  struct Outcome {
    const char* taken = hook::taken;
    const char* not_taken = hook::not_taken;
    int also = -1;
  };
  /// An expression of which only the truth is used. The compiler turns `and`, `or`, `not`, chained
  /// comparisons and conditional expressions there into jumps, and still does so afterwards.
  Object test(const Expression* node, const Outcome& outcome);
  Object test(const Expression* node) { return test(node, Outcome()); }
  Object test_of(const Expression* node, int also) { return test(node, Outcome{.also = also}); }
  Object unnoted_test(const Expression& node);

  // --- expressions
  Object call(const syntax::Call& node);
  Object callee(const syntax::Call& node);
  SourceSpan place_of_call(const syntax::Call& node) const;
  Object bool_op(const syntax::BoolOp& node, size_t first);
  Object decision(const Expression& node, const SourceSpan& span, std::optional<bool> keep_when);
  Object keywords(const std::vector<syntax::Keyword*>& nodes);
  Object generators(const std::vector<syntax::Comprehension>& nodes, const syntax::Scope* scope);
  template <class T>
  Object comprehension(const T& node,
                       const std::vector<std::pair<const char*, Expression*>>& parts);
  template <class T>
  bool is_asynchronous(const T& node) const {
    for (const syntax::Comprehension& generator : node.generators)
      if (generator.is_async) return true;
    return false;
  }
  Object loop(const Expression& iterable, int number) {
    return hook(hook::loop, {fact(number, iterable.span), gone_through(iterable), fact(iterable)},
                iterable.span);
  }
  /// What a loop goes through: as the argument of a hook, the compiler would not fold a set.
  Object gone_through(const Expression& iterable) {
    const Object folded = syntax::folded_set(iterable, original_);
    if (!folded) return expression(&iterable);
    const Object name = python::string(cat(placeholder_, ", set ", ++sets_));
    python::check_status(PyDict_SetItem(constants_, name.get(), folded.get()));
    return make("Constant", {{"value", name}}, &iterable.span);
  }
  bool is_local(const std::string& name) const {
    const syntax::NameKind kind = scope_->kind_of(tree_.mangle(name));
    return kind == syntax::NameKind::local || kind == syntax::NameKind::cell;
  }

  /// Runs `build` with the names of `scope`.
  template <class Build>
  auto in_scope(const syntax::Scope* scope, Build&& build) {
    const syntax::Scope* outer = std::exchange(scope_, scope);
    auto result = build();
    scope_ = outer;
    return result;
  }

  // --- statements
  /// The test of an `if` or `assert`. The compiler folds a constant one, so it stays as it is.
  Object statement_test(const Expression* node, const Statement& holder) {
    return node->kind == ExpressionKind::Constant ? copy(*node) : test_of(node, holder.fact);
  }
  void append(PyObject* list, const Object& statement) {
    python::check_status(PyList_Append(list, statement.get()));
  }
  void while_(const syntax::While& node, PyObject* list);
  Object for_(const syntax::For& node);
  Object function(const syntax::FunctionDef& node);
  Object match(const syntax::Match& node);

  const syntax::Tree& tree_;
  const std::string placeholder_;
  const std::vector<std::string> imports_;  ///< names that the module imports
  PyObject* const constants_;
  PyObject* const original_;
  int sets_ = 0;  ///< that stand for displays
  const syntax::Scope* scope_;
  AstBuilder plain_;
};

// --- tests ---------------------------------------------------------------------------------------

Object Instrumenter::test(const Expression* node, const Outcome& outcome) {
  const auto note = [&](const char* method) {
    std::vector<Object> facts = {fact(*node)};
    if (outcome.also >= 0) facts.push_back(fact(outcome.also, node->span));
    return hook(method, facts, node->span);
  };
  return make("IfExp",
              {{"test", unnoted_test(*node)},
               {"body", note(outcome.taken)},
               {"orelse", note(outcome.not_taken)}},
              &node->span);
}

Object Instrumenter::unnoted_test(const Expression& node) {
  if (const auto* operation = syntax::try_as<syntax::BoolOp>(&node)) {
    std::vector<Object> operands;
    for (const Expression* operand : operation->values) operands.push_back(test(operand));
    return make_bool_op(operation->op, operands, node.span);
  }
  if (const auto* operation = syntax::try_as<syntax::UnaryOp>(&node))
    if (operation->op == syntax::UnaryOperator::Not)
      return make("UnaryOp",
                  {{"op", make("Not", {}, nullptr)}, {"operand", test(operation->operand)}},
                  &node.span);
  if (node.kind == ExpressionKind::Compare) return copy(node);
  return expression(&node);
}

// --- expressions ---------------------------------------------------------------------------------

Object Instrumenter::expression(const Expression* node) {
  if (node == nullptr) return python::none();
  switch (node->kind) {
    case ExpressionKind::Attribute:
      if (as<syntax::Attribute>(node).ctx != syntax::Context::Load) return copy(*node);
      return value(*node, copy(*node));
    case ExpressionKind::Subscript:
      if (as<syntax::Subscript>(node).ctx != syntax::Context::Load) return copy(*node);
      return value(*node, copy(*node));
    case ExpressionKind::Name: {
      const auto& name = as<syntax::Name>(node);
      if (name.ctx != syntax::Context::Load || is_local(name.id)) return copy(*node);
      return value(*node, copy(*node));
    }
    case ExpressionKind::Call:
      return call(as<syntax::Call>(node));
    case ExpressionKind::BoolOp:
      return bool_op(as<syntax::BoolOp>(node), 0);
    case ExpressionKind::IfExp: {
      const auto& choice = as<syntax::IfExp>(node);
      return make("IfExp",
                  {{"test", test_of(choice.test, node->fact)},
                   {"body", expression(choice.body)},
                   {"orelse", expression(choice.orelse)}},
                  &node->span);
    }
    case ExpressionKind::UnaryOp: {
      const auto& operation = as<syntax::UnaryOp>(node);
      if (operation.op != syntax::UnaryOperator::Not) return copy(*node);
      const Expression& operand = *operation.operand;
      const Object truth = hook(hook::test, {fact(operand), expression(&operand)}, node->span);
      return make("UnaryOp", {{"op", make("Not", {}, nullptr)}, {"operand", truth}}, &node->span);
    }
    case ExpressionKind::Lambda: {
      const auto& lambda = as<syntax::Lambda>(node);
      if (lambda.scope->has_yield || lambda.scope->has_await) return plain_.expression(node);
      const Object plain = plain_.expression(node);
      const Object body = in_scope(lambda.scope, [&] { return expression(lambda.body); });
      python::set_attribute(plain.get(), "body", body.get());
      return plain;
    }
    case ExpressionKind::ListComp: {
      const auto& full = as<syntax::ListComp>(node);
      return comprehension(full, {{"elt", full.elt}});
    }
    case ExpressionKind::SetComp: {
      const auto& full = as<syntax::SetComp>(node);
      return comprehension(full, {{"elt", full.elt}});
    }
    case ExpressionKind::GeneratorExp: {
      const auto& full = as<syntax::GeneratorExp>(node);
      return comprehension(full, {{"elt", full.elt}});
    }
    case ExpressionKind::DictComp: {
      const auto& full = as<syntax::DictComp>(node);
      return comprehension(full, {{"key", full.key}, {"value", full.value}});
    }
    default:
      return copy(*node);
  }
}

/// The operands from `first` on, as a value: the deciding operand itself must be the result.
Object Instrumenter::bool_op(const syntax::BoolOp& node, size_t first) {
  const Expression& operand = *node.values[first];
  if (first + 1 == node.values.size()) return expression(&operand);
  const bool is_and = node.op == syntax::BoolOperator::And;
  const Object decided = decision(operand, node.span, !is_and);
  const Object kept = hook(hook::kept, {}, node.span);
  const Object rest = bool_op(node, first + 1);
  return make("IfExp",
              {{"test", decided}, {"body", is_and ? rest : kept}, {"orelse", is_and ? kept : rest}},
              &node.span);
}

/// The truth of an operand of the operation at `span`, as a bool. The operand is set aside if its
/// truth is `keep_when`.
Object Instrumenter::decision(const Expression& node, const SourceSpan& span,
                              std::optional<bool> keep_when) {
  const auto* operation = python::kTakesTruthOnce ? syntax::try_as<syntax::BoolOp>(&node) : nullptr;
  if (operation == nullptr) {
    const char* method = !keep_when   ? hook::test
                         : *keep_when ? hook::or_operand
                                      : hook::and_operand;
    return hook(method, {fact(node), expression(&node)}, span);
  }
  // Any operand of `or` may be the true one; a false `or` is its last operand. `and`: vice versa.
  const bool any_decides = keep_when == (operation->op == syntax::BoolOperator::Or);
  std::vector<Object> operands;
  for (const Expression* operand : operation->values) {
    const bool is_last = operand == operation->values.back();
    const bool may_be_kept = any_decides || is_last;
    // The operation around this one takes the truth of the last operand.
    operands.push_back(
        decision(*operand, is_last ? span : node.span, may_be_kept ? keep_when : std::nullopt));
  }
  return hook(hook::test, {fact(node), make_bool_op(operation->op, operands, node.span)}, span);
}

Object Instrumenter::callee(const syntax::Call& node) {
  const Expression& function = *node.func;
  const bool is_read = function.kind == ExpressionKind::Attribute ||
                       function.kind == ExpressionKind::Name ||
                       function.kind == ExpressionKind::Subscript;
  const SourceSpan& span = function.span;
  return hook(hook::callee,
              {fact(node.fact, span), fact(function.fact, span),
               is_read ? copy(function) : expression(&function)},
              span);
}

/// The place of the call instruction: for methods, the line of the method's name.
SourceSpan Instrumenter::place_of_call(const syntax::Call& node) const {
  constexpr size_t kMostArguments = 29;  // with more, the compiler passes a tuple
  const auto* method = syntax::try_as<syntax::Attribute>(node.func);
  if (method == nullptr || method->span.end_line == node.span.line) return node.span;
  if (const auto* module = syntax::try_as<syntax::Name>(method->value))
    if (std::find(imports_.begin(), imports_.end(), module->id) != imports_.end())
      return node.span;  // functions of modules are not methods
  size_t count = node.args.size() + node.keywords.size() + (node.keywords.empty() ? 0 : 1);
  for (const Expression* argument : node.args)
    if (argument->kind == ExpressionKind::Starred) return node.span;
  for (const syntax::Keyword* keyword : node.keywords)
    if (keyword->arg.empty()) return node.span;
  if (count > kMostArguments) return node.span;
  SourceSpan span = node.span;
  span.line = method->span.end_line;
  span.column = method->span.end_column - static_cast<int>(method->attr.size());
  return span;
}

Object Instrumenter::keywords(const std::vector<syntax::Keyword*>& nodes) {
  std::vector<Object> result;
  for (const syntax::Keyword* keyword : nodes)
    result.push_back(
        make("keyword",
             {{"arg", keyword->arg.empty() ? python::none() : python::string(keyword->arg)},
              {"value", expression(keyword->value)}},
             &keyword->span));
  return python::list(result);
}

Object Instrumenter::call(const syntax::Call& node) {
  const SourceSpan place = place_of_call(node);
  const Object function = callee(node);
  std::vector<Object> arguments;
  for (const Expression* argument : node.args) arguments.push_back(expression(argument));
  return value(node, make("Call",
                          {{"func", function},
                           {"args", python::list(arguments)},
                           {"keywords", keywords(node.keywords)}},
                          &place));
}

Object Instrumenter::generators(const std::vector<syntax::Comprehension>& nodes,
                                const syntax::Scope* scope) {
  std::vector<Object> result;
  for (const syntax::Comprehension& node : nodes) {
    const auto iterable = [&] { return loop(*node.iter, node.iter->fact); };
    // The first iterable is evaluated in the enclosing scope.
    const Object iter = result.empty() ? iterable() : in_scope(scope, iterable);
    result.push_back(in_scope(scope, [&] {
      std::vector<Object> tests;
      for (const Expression* condition : node.ifs) tests.push_back(test(condition));
      return make("comprehension",
                  {{"target", expression(node.target)},
                   {"iter", iter},
                   {"ifs", python::list(tests)},
                   {"is_async", python::integer(0)}},
                  nullptr);
    }));
  }
  return python::list(result);
}

template <class T>
Object Instrumenter::comprehension(const T& node,
                                   const std::vector<std::pair<const char*, Expression*>>& parts) {
  if (is_asynchronous(node) || node.scope->has_await) return plain_.expression(&node);
  const Object loops = generators(node.generators, node.scope);
  std::vector<Field> fields;
  for (const auto& [name, part] : parts)
    fields.push_back({name, in_scope(node.scope, [&, part = part] { return expression(part); })});
  fields.push_back({"generators", loops});
  return make(syntax::name(node.kind), fields, &node.span);
}

// --- statements ----------------------------------------------------------------------------------

void Instrumenter::statement(const Statement* node, PyObject* list) {
  switch (node->kind) {
    case StatementKind::If: {
      const auto& full = as<syntax::If>(node);
      return append(list, make("If",
                               {{"test", statement_test(full.test, *node)},
                                {"body", body(full.body)},
                                {"orelse", body(full.orelse)}},
                               &node->span));
    }
    case StatementKind::Assert: {
      const auto& full = as<syntax::Assert>(node);
      return append(
          list, make("Assert",
                     {{"test", statement_test(full.test, *node)}, {"msg", expression(full.msg)}},
                     &node->span));
    }
    case StatementKind::While:
      return while_(as<syntax::While>(node), list);
    case StatementKind::For:
      return append(list, for_(as<syntax::For>(node)));
    case StatementKind::FunctionDef:
      return append(list, function(as<syntax::FunctionDef>(node)));
    case StatementKind::Match:
      return append(list, match(as<syntax::Match>(node)));
    case StatementKind::AnnAssign: {
      const auto& full = as<syntax::AnnAssign>(node);
      return append(list, make("AnnAssign",
                               {{"target", expression(full.target)},
                                {"annotation", plain_.expression(full.annotation)},
                                {"value", expression(full.value)},
                                {"simple", python::integer(full.simple ? 1 : 0)}},
                               &node->span));
    }
    case StatementKind::ClassDef:
    case StatementKind::AsyncFunctionDef:
    case StatementKind::TypeAlias:
      return plain_.statement(node, list);
    default:
      return append(list, copy(*node));
  }
}

void Instrumenter::while_(const syntax::While& node, PyObject* list) {
  const Object number = fact(node.fact, node.span);
  const SourceSpan start = {nullptr, node.span.line, node.span.column, node.span.line,
                            node.span.column};
  append(list, make("Expr", {{"value", hook(hook::enter, {number}, start)}}, &start));
  const Object condition =
      test(node.test, {.taken = hook::again, .not_taken = hook::done, .also = node.fact});
  append(list, make("While",
                    {{"test", condition}, {"body", body(node.body)}, {"orelse", body(node.orelse)}},
                    &node.span));
}

Object Instrumenter::for_(const syntax::For& node) {
  return make("For",
              {{"target", expression(node.target)},
               {"iter", loop(*node.iter, node.fact)},
               {"body", body(node.body)},
               {"orelse", body(node.orelse)}},
              &node.span);
}

Object Instrumenter::function(const syntax::FunctionDef& node) {
  const Object result = plain_.copy(node);
  if (node.scope->has_yield || node.scope->has_await) return result;
  const Object statements = in_scope(node.scope, [&] { return body(node.body); });
  python::set_attribute(result.get(), "body", statements.get());
  return result;
}

Object Instrumenter::match(const syntax::Match& node) {
  std::vector<Object> cases;
  for (const syntax::MatchCase& one : node.cases) {
    const Object guard = one.guard == nullptr ? python::none() : test(one.guard);
    cases.push_back(make(
        "match_case",
        {{"pattern", pattern(one.pattern)}, {"guard", guard}, {"body", body(one.body)}}, nullptr));
  }
  return make("Match", {{"subject", expression(node.subject)}, {"cases", python::list(cases)}},
              &node.span);
}

// --- the code of a copy --------------------------------------------------------------------------

constexpr int kGenerators =
    CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
constexpr const char* kPlaceholder = "torchjanus hooks of this function";

std::string qualified_name(PyObject* code) {
  return python::to_string(python::attribute(code, "co_qualname").get());
}

/// Renames nested code objects to the qualified names of the program: the prefix `from` becomes
/// `to`.
Object with_names(PyObject* code, const std::string& from, const std::string& to) {
  std::vector<Object> constants;
  for (const Object& constant : python::elements(python::attribute(code, "co_consts").get()))
    constants.push_back(PyCode_Check(constant.get()) ? with_names(constant.get(), from, to)
                                                     : constant);
  std::string name = qualified_name(code);
  if (name.starts_with(from)) name = to + name.substr(from.size());
  return syntax::replaced(
      code, {{"co_consts", python::tuple(constants)}, {"co_qualname", python::string(name)}});
}

/// The code with the sets of the original in the place of its own. A display of constants is copied
/// from such a set, and has its order, which may come from another place of the file.
Object with_sets_of(PyObject* original, const Object& code) {
  std::vector<Object> constants;
  for (Object& constant : python::elements(python::attribute(code.get(), "co_consts").get())) {
    if (PyFrozenSet_CheckExact(constant.get())) {
      if (Object own = syntax::set_in_code(original, constant.get())) constant = std::move(own);
    } else if (PyCode_Check(constant.get())) {
      constant = with_sets_of(original, constant);
    }
    constants.push_back(std::move(constant));
  }
  return syntax::replaced(code.get(), {{"co_consts", python::tuple(constants)}});
}

/// Registers each nested code object of the copy as a copy of the original's.
void note_copies(PyObject* copy, PyObject* original) {
  syntax::note_copy(copy, original);
  const auto copies = syntax::nested_codes(copy), originals = syntax::nested_codes(original);
  if (copies.size() != originals.size()) return;
  for (size_t i = 0; i < copies.size(); ++i) {
    const auto* one = reinterpret_cast<PyCodeObject*>(copies[i].get());
    const auto* other = reinterpret_cast<PyCodeObject*>(originals[i].get());
    if (one->co_firstlineno == other->co_firstlineno && python::equal(one->co_name, other->co_name))
      note_copies(copies[i].get(), originals[i].get());
  }
}

/// The definition with an instrumented body, without decorators and defaults, and with the same
/// first line.
Object instrumented_definition(const syntax::Source& source, PyObject* constants,
                               PyObject* original) {
  const syntax::Tree& tree = *source.tree;
  Instrumenter instrumenter(tree, kPlaceholder, source.imports, constants, original);
  if (tree.lambda != nullptr) {
    AstBuilder plain;
    const Object lambda = plain.expression(tree.lambda);
    python::set_attribute(lambda.get(), "body", instrumenter.expression(tree.lambda->body).get());
    return AstBuilder::make("Expr", {{"value", lambda}}, &tree.lambda->span);
  }
  AstBuilder plain;
  const Object definition = plain.copy(*tree.function);
  python::set_attribute(definition.get(), "body", instrumenter.body(tree.body).get());
  return definition;
}

/// The code of a definition with another body, compiled in the context of the original.
Object code_of_definition(PyObject* original, const syntax::Source& source, PyObject* definition,
                          PyObject* constants) {
  const syntax::Tree& tree = *source.tree;
  syntax::CodeContext context = syntax::context_of(original);
  context.class_name = tree.class_name;
  context.imports = source.imports;
  const std::vector<Object> codes = syntax::compile_definition(definition, context);
  TORCHJANUS_CHECK(!codes.empty(), "instrument: ", tree.name, " compiled to nothing");
  const Object compiled = codes.back();
  TORCHJANUS_CHECK(python::equal(python::attribute(compiled.get(), "co_freevars").get(),
                                 python::attribute(original, "co_freevars").get()),
                   "instrument: the copy of ", tree.name, " has other free variables");
  const Object named = with_names(with_sets_of(original, compiled).get(),
                                  qualified_name(compiled.get()), qualified_name(original));
  const int flags = reinterpret_cast<PyCodeObject*>(original)->co_flags;
  const Object name = python::attribute(original, "co_name");
  return patch_constants(
      syntax::replaced(named.get(), {{"co_flags", python::integer(flags)}, {"co_name", name}})
          .get(),
      constants);
}

Object instrumented_code(PyObject* original, const syntax::Source& source) {
  const syntax::Tree& tree = *source.tree;
  Facts& facts = profiles().of(original, static_cast<size_t>(tree.fact_count));
  const Object constants = python::check(PyDict_New());
  python::check_status(
      PyDict_SetItemString(constants.get(), kPlaceholder, make_hooks(facts).get()));
  const Object code = code_of_definition(
      original, source, instrumented_definition(source, constants.get(), original).get(),
      constants.get());
  note_copies(code.get(), original);
  return code;
}

/// The instrumented code of a function, made once; null if there is none.
Object code_of_copy(PyObject* function) {
  // Entries keep the code objects alive, as in source_of().
  static auto& cache = *new std::unordered_map<PyObject*, Object>();
  PyObject* original = PyFunction_GET_CODE(function);
  if (const auto found = cache.find(original); found != cache.end()) return found->second;
  Object code;
  const syntax::Source& source = syntax::source_of(function);
  const bool is_plain = source.tree != nullptr &&
                        (reinterpret_cast<PyCodeObject*>(original)->co_flags & kGenerators) == 0;
  if (is_plain) {
    try {
      code = instrumented_code(original, source);
    } catch (const python::ErrorSet&) {
      log("profile", cat(source.tree->name, " is not profiled: ", python::take_error_message()));
    } catch (const std::exception& error) {
      log("profile", cat(source.tree->name, " is not profiled: ", error.what()));
    }
  }
  const auto [entry, is_new] = cache.try_emplace(original, code);
  if (is_new) Py_INCREF(original);
  return entry->second;
}

/// A copy of the function with that code.
Object function_with(const Object& code, PyObject* original) {
  const auto* from = reinterpret_cast<PyFunctionObject*>(original);
  Object result = python::check(
      PyFunction_NewWithQualName(code.get(), from->func_globals, from->func_qualname));
  auto* to = reinterpret_cast<PyFunctionObject*>(result.get());
  const auto share = [](PyObject*& field, PyObject* value) {
    Py_XINCREF(value);
    Py_XSETREF(field, value);
  };
  share(to->func_name, from->func_name);
  share(to->func_defaults, from->func_defaults);
  share(to->func_kwdefaults, from->func_kwdefaults);
  share(to->func_closure, from->func_closure);
  share(to->func_module, from->func_module);
  share(to->func_builtins, from->func_builtins);
  share(to->func_doc, from->func_doc);
  share(to->func_dict, from->func_dict);
  python::share_annotations(*from, *to);
  return result;
}

}  // namespace

Object instrumented_function(PyObject* function) {
  const python::ErrorScope scope;
  const python::GcPause pause;
  try {
    PyObject* code = PyFunction_GET_CODE(function);
    if (syntax::original_code(code) != code) return Object::borrow(function);
    const Object copy = code_of_copy(function);
    return copy ? function_with(copy, function) : Object();
  } catch (const python::ErrorSet&) {
    return {};
  }
}

Object function_of_definition(PyObject* function, PyObject* definition, PyObject* constants) {
  PyObject* original = PyFunction_GET_CODE(function);
  const Object code =
      code_of_definition(original, syntax::source_of(function), definition, constants);
  syntax::note_copy(code.get(), original);
  return function_with(code, function);
}

InstrumentedStatements instrument_statements(const syntax::Tree& tree, PyObject* key) {
  static int counter = 0;
  const std::string placeholder = cat("torchjanus hooks of statements ", ++counter);
  InstrumentedStatements result;
  result.constants = python::check(PyDict_New());
  Instrumenter instrumenter(tree, placeholder, {}, result.constants.get(), nullptr);
  std::vector<Object> statements, all;
  for (syntax::Statement* each : tree.body) {
    statements.push_back(instrumenter.body({each}));
    for (Object& node : python::elements(statements.back().get())) all.push_back(std::move(node));
  }
  result.statements = python::list(statements);
  result.module = AstBuilder::make(
      "Module", {{"body", python::list(all)}, {"type_ignores", python::list({})}}, nullptr);
  Facts& facts = profiles().of(key, static_cast<size_t>(tree.fact_count));
  python::check_status(PyDict_SetItem(result.constants.get(), python::string(placeholder).get(),
                                      make_hooks(facts).get()));
  return result;
}

Object patch_constants(PyObject* code, PyObject* constants) {
  std::vector<Object> patched;
  bool is_changed = false;
  for (const Object& constant : python::elements(python::attribute(code, "co_consts").get())) {
    Object replacement = constant;
    if (PyCode_Check(constant.get()))
      replacement = patch_constants(constant.get(), constants);
    else if (PyUnicode_CheckExact(constant.get()))
      if (const Object found = python::dict_item(constants, constant.get())) replacement = found;
    is_changed |= !replacement.is(constant.get());
    patched.push_back(std::move(replacement));
  }
  if (!is_changed) return Object::borrow(code);
  return syntax::replaced(code, {{"co_consts", python::tuple(patched)}});
}

}  // namespace janus::speculate
