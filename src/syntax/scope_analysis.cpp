// Scope analysis in two walks, as in Python's symbol table. The first notes how each scope uses
// each name. The second goes from the outside in to decide the meaning of names, and back out to
// tell enclosing scopes which of their variables are shared.
#include "syntax/scope_analysis.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "python/version.h"
#include "syntax/fields.h"

namespace janus::syntax {
namespace {

/// How a scope uses a name.
struct Use {
  bool bound = false;     ///< a parameter, target, import, definition, or deleted
  bool global = false;    ///< declared `global`
  bool nonlocal = false;  ///< declared `nonlocal`, or bound by `:=` in a comprehension
};

using Names = std::set<std::string, std::less<>>;

/// The result of the first walk for one scope.
struct Block {
  Scope* scope = nullptr;
  std::string class_name;
  std::map<std::string, Use, std::less<>> uses;
  std::vector<std::unique_ptr<Block>> children;
};

class Collector {
 public:
  Collector(Tree& tree, bool at_module_level) : tree_(tree), at_module_level_(at_module_level) {}

  std::unique_ptr<Block> collect() {
    auto root = make_block(tree_.lambda != nullptr     ? Scope::Kind::lambda
                           : tree_.function != nullptr ? Scope::Kind::function
                                                       : Scope::Kind::statements,
                           tree_.class_name);
    block_ = root.get();
    tree_.scope = root->scope;
    // Decorators, defaults and annotations of the root belong to the enclosing scope.
    if (tree_.arguments != nullptr) parameters(*tree_.arguments);
    if (tree_.lambda != nullptr) {
      attach(*tree_.lambda);
      expression(tree_.lambda->body);
    } else {
      if (tree_.function != nullptr) attach_root();
      body(tree_.body);
    }
    return root;
  }

 private:
  /// The general walk over all expressions, statements and patterns in a node's fields.
  struct Walk {
    Collector& collector;
    void operator()(const char*, Expression* const& node) { collector.expression(node); }
    void operator()(const char*, Pattern* const& node) { collector.pattern(node); }
    void operator()(const char*, const Body& statements) { collector.body(statements); }
    void operator()(const char*, ExceptHandler* const& handler) { collector.handler(*handler); }
    void operator()(const char*, Keyword* const& keyword) { collector.expression(keyword->value); }
    template <class T>
      requires(std::is_same_v<T, WithItem> || std::is_same_v<T, MatchCase>)
    void operator()(const char*, const T& part) {
      each_field(part, *this);
    }
    template <class T>
    void operator()(const char* name, const std::vector<T>& parts) {
      for (const T& part : parts) (*this)(name, part);
    }
    template <class T>
    void operator()(const char*, const T&) {}  // names, operators, constants
  };
  template <class T>
  void walk(const T& node) {
    each_field(node, Walk{*this});
  }

  void body(const Body& statements) {
    for (const Statement* node : statements) statement(node);
  }

  void expression(const Expression* node) {
    if (node == nullptr) return;
    with_struct(*node, [this](const auto& full) { enter(full); });
  }
  void statement(const Statement* node) {
    with_struct(*node, [this](const auto& full) { enter(full); });
  }
  void pattern(const Pattern* node) {
    if (node == nullptr) return;
    with_struct(*node, [this](const auto& full) { enter(full); });
  }

  template <class T>
  void enter(const T& node) {
    walk(node);
  }

  // --- names
  Use& use(const std::string& name) { return block_->uses[mangle(block_->class_name, name)]; }
  void bind(const std::string& name) { use(name).bound = true; }

  void enter(const Name& node) {
    if (node.ctx != Context::Load) return bind(node.id);
    use(node.id);
    const Scope::Kind kind = block_->scope->kind;
    if (node.id == "super" && (kind == Scope::Kind::function || kind == Scope::Kind::lambda))
      block_->uses["__class__"];
  }
  void enter(const Global& node) {
    for (const Identifier& name : node.names) use(name).global = true;
  }
  void enter(const Nonlocal& node) {
    for (const Identifier& name : node.names) use(name).nonlocal = true;
  }
  void enter(const Import& node) { aliases(node.names); }
  void enter(const ImportFrom& node) { aliases(node.names); }
  void aliases(const std::vector<Alias*>& names) {
    for (const Alias* alias : names) {
      if (alias->name == "*") continue;
      const std::string& bound = alias->asname.empty() ? alias->name : alias->asname;
      bind(bound.substr(0, bound.find('.')));
    }
  }
  void handler(const ExceptHandler& handler) {
    expression(handler.type);
    if (!handler.name.empty()) bind(handler.name);
    body(handler.body);
  }
  void enter(const MatchAs& node) {
    pattern(node.pattern);
    if (!node.name.empty()) bind(node.name);
  }
  void enter(const MatchStar& node) {
    if (!node.name.empty()) bind(node.name);
  }
  void enter(const MatchMapping& node) {
    walk(node);
    if (!node.rest.empty()) bind(node.rest);
  }
  void enter(const AnnAssign& node) {
    if (const Name* name = try_as<Name>(node.target)) {
      // An annotated name is local even without a value, unless it is `(name): type`.
      if (node.simple || node.value != nullptr) bind(name->id);
    } else {
      expression(node.target);
    }
    // Where functions defer theirs, one of a local variable counts for nothing.
    if (!python::kDefersAnnotations || block_->scope->kind != Scope::Kind::function)
      annotation(node.annotation);
    expression(node.value);
  }
  void enter(const NamedExpr& node) {
    expression(node.value);
    const Name& target = as<Name>(node.target);
    if (block_->scope->kind != Scope::Kind::comprehension) return bind(target.id);
    bind_around_comprehensions(target.id);
  }
  /// Binds `:=` of a comprehension in the innermost enclosing scope that is no comprehension.
  void bind_around_comprehensions(const std::string& name) {
    for (size_t i = blocks_.size(); i-- > 0;) {
      Block& outer = *blocks_[i];
      if (outer.scope->kind == Scope::Kind::comprehension) continue;
      Use& outer_use = outer.uses[mangle(outer.class_name, name)];
      const bool is_global =
          outer_use.global || (outer.scope->kind == Scope::Kind::statements && at_module_level_);
      outer_use.bound = true;
      Use& inner_use = use(name);
      // In comprehensions in between, the variable is free without a declaration.
      (is_global ? inner_use.global : inner_use.nonlocal) = true;
      inner_use.bound = true;
      return;
    }
  }

  void enter(const Yield& node) {
    block_->scope->has_yield = true;
    walk(node);
  }
  void enter(const YieldFrom& node) {
    block_->scope->has_yield = true;
    walk(node);
  }
  void enter(const Await& node) {
    block_->scope->has_await = true;
    walk(node);
  }
  void enter(const AsyncFor& node) {
    block_->scope->has_await = true;
    walk(node);
  }
  void enter(const AsyncWith& node) {
    block_->scope->has_await = true;
    walk(node);
  }

  // --- nested scopes
  std::unique_ptr<Block> make_block(Scope::Kind kind, std::string class_name) {
    auto block = std::make_unique<Block>();
    block->scope = tree_.make_scope();
    block->scope->kind = kind;
    block->class_name = std::move(class_name);
    return block;
  }

  /// Runs `inside` in a new nested scope and attaches the scope to the node.
  template <class T>
  void nest(const T& node, Scope::Kind kind, const std::function<void()>& inside) {
    auto block = make_block(kind, block_->class_name);
    if constexpr (std::is_same_v<T, ClassDef>) block->class_name = node.name_;
    attach_scope(node, block->scope);
    enter_block(std::move(block), inside);
  }
  void enter_block(std::unique_ptr<Block> block, const std::function<void()>& inside) {
    block->scope->parent = block_->scope;
    Block* outer = block_;
    blocks_.push_back(outer);
    block_ = block.get();
    outer->children.push_back(std::move(block));
    inside();
    blocks_.pop_back();
    block_ = outer;
  }
  template <class T>
  void attach(const T& node) {
    attach_scope(node, block_->scope);
  }
  template <class T>
  static void attach_scope(const T& node, Scope* scope) {
    const_cast<T&>(node).scope = scope;  // the tree is still ours alone
  }
  void attach_root() {
    if (const auto* function = try_as<FunctionDef>(tree_.function)) attach(*function);
    if (const auto* function = try_as<AsyncFunctionDef>(tree_.function)) attach(*function);
  }

  void parameters(const Arguments& arguments) {
    std::vector<std::string>& names = block_->scope->parameters;
    const auto add = [&](const Argument* argument) {
      if (argument == nullptr) return;
      bind(argument->arg);
      names.push_back(mangle(block_->class_name, argument->arg));
    };
    for (const Argument* argument : arguments.posonlyargs) add(argument);
    for (const Argument* argument : arguments.args) add(argument);
    for (const Argument* argument : arguments.kwonlyargs) add(argument);
    add(arguments.vararg);
    add(arguments.kwarg);
  }
  void defaults(const Arguments& arguments) {
    for (const Expression* value : arguments.defaults) expression(value);
    for (const Expression* value : arguments.kw_defaults) expression(value);
  }
  /// What is deferred, a nested function of its own reads.
  void annotation(const Expression* node) {
    if (node == nullptr || !python::kDefersAnnotations) return expression(node);
    enter_block(make_block(Scope::Kind::function, block_->class_name), [&] { expression(node); });
  }
  void annotations(const Arguments& arguments) {
    const auto add = [&](const Argument* argument) {
      if (argument != nullptr) annotation(argument->annotation);
    };
    for (const Argument* argument : arguments.posonlyargs) add(argument);
    for (const Argument* argument : arguments.args) add(argument);
    add(arguments.vararg);
    for (const Argument* argument : arguments.kwonlyargs) add(argument);
    add(arguments.kwarg);
  }

  void enter(const FunctionDef& node) { definition(node); }
  void enter(const AsyncFunctionDef& node) { definition(node); }
  template <class T>
  void definition(const T& node) {
    bind(node.name_);
    defaults(node.args);
    annotations(node.args);
    annotation(node.returns);
    for (const Expression* decorator : node.decorator_list) expression(decorator);
    nest(node, Scope::Kind::function, [&] {
      parameters(node.args);
      body(node.body);
    });
  }
  void enter(const Lambda& node) {
    defaults(node.args);
    nest(node, Scope::Kind::lambda, [&] {
      parameters(node.args);
      expression(node.body);
    });
  }
  void enter(const ClassDef& node) {
    bind(node.name_);
    for (const Expression* base : node.bases) expression(base);
    for (const Keyword* keyword : node.keywords) expression(keyword->value);
    for (const Expression* decorator : node.decorator_list) expression(decorator);
    nest(node, Scope::Kind::class_, [&] { body(node.body); });
  }

  void enter(const ListComp& node) { eager(node, {node.elt}); }
  void enter(const SetComp& node) { eager(node, {node.elt}); }
  void enter(const GeneratorExp& node) { comprehension(node, {node.elt}); }
  void enter(const DictComp& node) { eager(node, {node.key, node.value}); }
  /// A comprehension, which runs at once: if it awaits, its enclosing scope awaits.
  template <class T>
  void eager(const T& node, const std::vector<Expression*>& results) {
    comprehension(node, results);
    block_->scope->has_await |= node.scope->has_await;
  }
  template <class T>
  void comprehension(const T& node, const std::vector<Expression*>& results) {
    // The first iterable belongs to the enclosing scope.
    expression(node.generators.front().iter);
    nest(node, Scope::Kind::comprehension, [&] {
      for (size_t i = 0; i < node.generators.size(); ++i) {
        const Comprehension& generator = node.generators[i];
        if (generator.is_async) block_->scope->has_await = true;
        expression(generator.target);
        if (i > 0) expression(generator.iter);
        for (const Expression* test : generator.ifs) expression(test);
      }
      for (const Expression* result : results) expression(result);
    });
  }

  Tree& tree_;
  const bool at_module_level_;
  Block* block_ = nullptr;
  std::vector<Block*> blocks_;  ///< those around block_, outermost first
};

class Analyser {
 public:
  explicit Analyser(bool at_module_level) : at_module_level_(at_module_level) {}

  /// Decides the names of `block` and of nested ones. `bound`: the names that enclosing functions
  /// bind. Returns those of them that it needs.
  Names analyse(Block& block, const Names& bound) {
    Scope& scope = *block.scope;
    Names free;
    for (const auto& [name, use] : block.uses) {
      const NameKind kind = decide(scope, name, use, bound);
      scope.names[name] = kind;
      if (use.bound) scope.assigned.push_back(name);
      if (kind == NameKind::free) free.insert(name);
    }
    const Names inner_bound = visible_inside(block, bound);
    Names wanted;
    for (const auto& child : block.children) wanted.merge(analyse(*child, inner_bound));
    const bool is_class = scope.kind == Scope::Kind::class_;
    if (is_class) wanted.erase("__class__");
    for (const std::string& name : wanted) {
      const auto [place, is_new] = scope.names.try_emplace(name, NameKind::free);
      if (!is_new && !is_class && place->second == NameKind::local)
        place->second = NameKind::cell;
      else  // a class's own variable of that name is another one
        free.insert(name);
    }
    return free;
  }

 private:
  static NameKind decide(const Scope& scope, const std::string& name, const Use& use,
                         const Names& bound) {
    if (use.global) return NameKind::global;
    if (use.nonlocal) return NameKind::free;
    if (use.bound) return NameKind::local;
    if (!bound.contains(name)) return NameKind::global;
    return scope.kind == Scope::Kind::statements ? NameKind::local : NameKind::free;
  }

  /// The names of enclosing scopes that functions nested in `block` may use.
  Names visible_inside(const Block& block, Names bound) const {
    const Scope& scope = *block.scope;
    if (scope.kind == Scope::Kind::class_) {
      bound.insert("__class__");
      return bound;
    }
    if (scope.kind == Scope::Kind::statements && at_module_level_) return {};
    for (const auto& [name, use] : block.uses) {
      if (use.global)
        bound.erase(name);
      else if (scope.names.at(name) == NameKind::local)
        bound.insert(name);
    }
    return bound;
  }

  bool at_module_level_;
};

}  // namespace

void analyse_scopes(Tree& tree, const std::vector<std::string>& outer, bool at_module_level) {
  const std::unique_ptr<Block> root = Collector(tree, at_module_level).collect();
  Analyser(at_module_level).analyse(*root, Names(outer.begin(), outer.end()));
}

}  // namespace janus::syntax
