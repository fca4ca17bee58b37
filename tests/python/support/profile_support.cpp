// The extension module _profile_support: instrumented copies, profiled calls and the facts that
// they leave, for tests.
#include "speculate/facts.h"
#include "speculate/hooks.h"
#include "speculate/instrument.h"
#include "syntax/source.h"
#include "tests/python/support/guarded.h"
#include "tests/python/support/tree_walk.h"

namespace {

using janus::python::Object;
using janus::support::guarded;
namespace python = janus::python;
namespace speculate = janus::speculate;
namespace syntax = janus::syntax;

PyObject* instrumented(PyObject*, PyObject* function) {
  return guarded([&] {
    Object copy = speculate::instrumented_function(function);
    return copy ? copy : python::none();
  });
}

PyObject* profiled_call(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* keyword_names) {
  return guarded([&] {
    return speculate::profiled_call(arguments[0], arguments + 1, count - 1, keyword_names);
  });
}

void set(const Object& dict, const char* name, const Object& value) {
  python::check_status(PyDict_SetItemString(dict.get(), name, value.get()));
}

Object describe(const speculate::NodeFact& fact) {
  const Object result = python::check(PyDict_New());
  if (fact.taken + fact.not_taken > 0)
    set(result, "tests",
        python::tuple({python::integer(static_cast<int64_t>(fact.taken)),
                       python::integer(static_cast<int64_t>(fact.not_taken))}));
  if (fact.least_trips >= 0)
    set(result, "trips",
        python::tuple({python::integer(fact.least_trips), python::integer(fact.most_trips)}));
  if (fact.value.level() != speculate::ValueFact::Level::nothing)
    set(result, "value", python::string(fact.value.describe()));
  if (fact.callee.level() != speculate::ValueFact::Level::nothing)
    set(result, "callee", python::string(fact.callee.describe()));
  return result;
}

/// Lists the facts of a tree's nodes: (kind, line, column, facts).
struct FactWalk : janus::support::TreeWalk<FactWalk> {
  FactWalk(const speculate::Facts& facts, std::vector<Object>& out) : facts(facts), out(out) {}
  const speculate::Facts& facts;
  std::vector<Object>& out;

  template <class T>
  void see(const T& node) {
    const Object described = describe(facts.nodes.at(static_cast<size_t>(node.fact)));
    if (PyDict_Size(described.get()) > 0)
      out.push_back(
          python::tuple({python::string(syntax::name(node.kind)), python::integer(node.span.line),
                         python::integer(node.span.column), described}));
    into(node);
  }
};

Object facts_of(const syntax::Tree& tree, PyObject* key) {
  const speculate::Facts* facts = speculate::profiles().find(key);
  if (facts == nullptr) return python::none();
  std::vector<Object> found;
  FactWalk walk(*facts, found);
  walk.visit(tree.lambda);
  for (const syntax::Statement* statement : tree.body) walk.visit(statement);
  return python::tuple({python::integer(static_cast<int64_t>(facts->runs)), python::list(found)});
}

PyObject* facts(PyObject*, PyObject* function) {
  return guarded([&] {
    const syntax::Source& source = syntax::source_of(function);
    return source.tree == nullptr ? python::none()
                                  : facts_of(*source.tree, PyFunction_GET_CODE(function));
  });
}

/// run_statements(module, globals): the statements once, profiled; their facts.
PyObject* run_statements(PyObject*, PyObject* const* arguments, Py_ssize_t) {
  return guarded([&] {
    const auto tree = syntax::tree_of_statements(arguments[0], "statements", "statements", true);
    const auto instrumented = speculate::instrument_statements(*tree, arguments[0]);
    const Object code = python::call(python::import_attribute("builtins", "compile").get(),
                                     {instrumented.module.get(), python::string("statements").get(),
                                      python::string("exec").get()});
    const Object patched = speculate::patch_constants(code.get(), instrumented.constants.get());
    const speculate::ProfileRun run;
    python::call(python::import_attribute("builtins", "exec").get(), {patched.get(), arguments[1]});
    return facts_of(*tree, arguments[0]);
  });
}

/// A ValueFact that has seen the objects, as text.
PyObject* joined(PyObject*, PyObject* objects) {
  return guarded([&] {
    speculate::ValueFact fact;
    for (const Object& object : python::elements(objects)) fact.see(object.get());
    return python::string(fact.describe());
  });
}

template <class Function>
PyCFunction c_function(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef methods[] = {
    {"instrumented", instrumented, METH_O, "The instrumented copy of a function, or None."},
    {"profiled_call", c_function(profiled_call), METH_FASTCALL | METH_KEYWORDS,
     "profiled_call(function, *args, **kwargs)"},
    {"facts", facts, METH_O, "(runs, [(kind, line, column, facts)]) of a function"},
    {"run_statements", c_function(run_statements), METH_FASTCALL,
     "run_statements(module, globals) -> facts"},
    {"joined", joined, METH_O, "What a fact says that has seen these objects."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_profile_support",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__profile_support() { return PyModule_Create(&definition); }
