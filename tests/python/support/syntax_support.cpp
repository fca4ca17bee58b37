// The extension module _syntax_support: what the syntax room makes of Python's syntax, as Python
// objects that tests compare with `ast` and `symtable`.
#include "syntax/convert.h"
#include "syntax/scope.h"
#include "syntax/source.h"
#include "tests/python/support/guarded.h"
#include "tests/python/support/tree_walk.h"

namespace {

using janus::python::Object;
using janus::support::guarded;
namespace python = janus::python;
namespace syntax = janus::syntax;

Object strings(const std::vector<std::string>& texts) {
  std::vector<Object> result;
  for (const std::string& text : texts) result.push_back(python::string(text));
  return python::list(result);
}

const char* text(syntax::NameKind kind) {
  switch (kind) {
    case syntax::NameKind::local:
      return "local";
    case syntax::NameKind::cell:
      return "cell";
    case syntax::NameKind::free:
      return "free";
    case syntax::NameKind::global:
      return "global";
  }
  return "?";
}

const char* text(syntax::Scope::Kind kind) {
  switch (kind) {
    case syntax::Scope::Kind::function:
      return "function";
    case syntax::Scope::Kind::lambda:
      return "lambda";
    case syntax::Scope::Kind::comprehension:
      return "comprehension";
    case syntax::Scope::Kind::class_:
      return "class";
    case syntax::Scope::Kind::statements:
      return "statements";
  }
  return "?";
}

Object describe(const syntax::Scope& scope, int line) {
  const Object names = python::check(PyDict_New());
  for (const auto& [name, kind] : scope.names)
    python::check_status(
        PyDict_SetItem(names.get(), python::string(name).get(), python::string(text(kind)).get()));
  return python::tuple({python::string(text(scope.kind)), python::integer(line), names,
                        strings(scope.assigned), strings(scope.parameters),
                        python::boolean(scope.has_yield), python::boolean(scope.has_await)});
}

/// Collects the scopes that hang on nodes, and checks that facts are dense.
struct ScopeWalk : janus::support::TreeWalk<ScopeWalk> {
  ScopeWalk(std::vector<Object>& out, std::vector<bool>& facts) : out(out), facts(facts) {}
  std::vector<Object>& out;
  std::vector<bool>& facts;

  template <class T>
  void see(const T& node) {
    if (facts.at(static_cast<size_t>(node.fact)))
      throw std::runtime_error("two nodes have the same fact");
    facts[static_cast<size_t>(node.fact)] = true;
    syntax::with_struct(node, [this](const auto& full) {
      if constexpr (requires { full.scope; }) {
        // Decorators and defaults of the root stand outside its scope.
        if (full.scope != nullptr) out.push_back(describe(*full.scope, full.span.line));
      }
    });
    into(node);
  }
};

Object scopes_of(const syntax::Tree& tree) {
  std::vector<Object> found;
  std::vector<bool> facts(static_cast<size_t>(tree.fact_count));
  ScopeWalk walk(found, facts);
  if (tree.lambda != nullptr) {
    walk.visit(tree.lambda);
  } else if (tree.function != nullptr) {
    walk.visit(tree.function);
  } else {
    found.push_back(describe(*tree.scope, 0));
    for (const syntax::Statement* statement : tree.body) walk.visit(statement);
  }
  return python::list(found);
}

PyObject* mirror(PyObject*, PyObject* node) {
  return guarded([&] {
    const auto tree = syntax::convert(node, std::make_shared<const std::string>("file"));
    syntax::AstBuilder builder;
    if (tree->lambda != nullptr) return builder.expression(tree->lambda);
    if (tree->function == nullptr) {
      const Object body = builder.body(tree->body);
      return syntax::AstBuilder::make(
          "Module", {{"body", body}, {"type_ignores", python::list({})}}, nullptr);
    }
    const Object statements = builder.body({const_cast<syntax::Statement*>(tree->function)});
    return python::elements(statements.get()).front();
  });
}

PyObject* scopes(PyObject*, PyObject* const* arguments, Py_ssize_t) {
  return guarded([&] {
    std::vector<std::string> frame_variables;
    for (const Object& name : python::elements(arguments[2]))
      frame_variables.push_back(python::to_string(name.get()));
    const auto tree = syntax::tree_of_statements(
        arguments[0], "file", "module", PyObject_IsTrue(arguments[1]) == 1, frame_variables);
    return scopes_of(*tree);
  });
}

PyObject* source_of(PyObject*, PyObject* function) {
  return guarded([&] {
    const syntax::Source& source = syntax::source_of(function);
    if (source.tree == nullptr)
      return python::tuple({python::none(), python::string(source.why_not)});
    return python::tuple({syntax::definition_of(function), python::string(source.tree->name),
                          python::string(source.tree->class_name), scopes_of(*source.tree)});
  });
}

PyMethodDef methods[] = {
    {"mirror", mirror, METH_O, "An ast node through the mirror and back."},
    {"scopes", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(scopes)), METH_FASTCALL,
     "scopes(module, at_module_level, frame_variables)"},
    {"source_of", source_of, METH_O, "(ast, name, class, scopes) or (None, why not)"},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_syntax_support",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__syntax_support() { return PyModule_Create(&definition); }
