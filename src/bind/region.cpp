// How the rewritten script uses a Region R for statements S:
//
//   if R.active() and R.enter():        # S ran as a graph
//       a, b = R.values()               # (at module level enter() has set the globals itself)
//       if R.is_unbound(0): del a
//       if R.broke(): break
//       if R.returned(): return R.returned_value()
//   elif R.profiling():
//       try: <instrumented S>
//       finally: R.leave()
//   else: S
//
// Several threads may be between these calls at once, and S may reach itself again; so what a call
// of enter() found out is kept for each thread, and profile runs that are open are a stack.
#include "bind/region.h"

#include <structmember.h>

#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "bind/snapshot.h"
#include "speculate/describe.h"
#include "speculate/facts.h"
#include "speculate/hooks.h"
#include "syntax/scope.h"
#include "syntax/source.h"

namespace janus::bind {
namespace {

using speculate::Call;
using speculate::Dispatcher;

/// How statements end; the numbers are Generated::result's.
enum class End : int64_t { fell_through = 0, continue_ = 1, break_ = 2, return_ = 3 };

/// What the last enter() of one thread found.
struct Entered {
  bool profile = false;
  End end = End::fell_through;
  python::Object returned;
  std::vector<python::Object> values;
  std::vector<bool> unbound;
  std::vector<double> profile_starts;  ///< of the profile runs that are open
};

struct RegionState {
  RegionState(std::string name, std::string file, int line)
      : dispatcher(std::move(name), std::move(file), line, {}) {}
  Dispatcher dispatcher;
  python::Object module;
  std::shared_ptr<const syntax::Tree> tree;
  bool at_module_level = false;
  python::Object assigned;  ///< tuple of names, in the order of values()
  python::Object deleted;   ///< set of the names that the statements may delete
  std::map<unsigned long, Entered> entered;

  bool deletes(PyObject* name) const { return PySet_Contains(deleted.get(), name) == 1; }

  Entered& here() { return entered[PyThread_get_thread_ident()]; }
};

struct RegionObject {
  PyObject_HEAD RegionState* state;
  PyObject* weak_references;
};

RegionState& state_of(PyObject* object) { return *reinterpret_cast<RegionObject*>(object)->state; }

/// Runs `body`; C++ exceptions become Python's.
template <class Body>
PyObject* guarded(Body&& body) {
  try {
    return body();
  } catch (const python::ErrorSet&) {
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// --- entering ------------------------------------------------------------------------------------

Dispatcher::Roots roots_of_call(const Call& call) {
  Dispatcher::Roots roots;
  for (const auto& [name, kind] : call.tree->scope->names) {
    PyObject* value = PyDict_GetItemString(call.variables, name.c_str());
    if (value != nullptr) roots.emplace_back(name, value);
  }
  return roots;
}

/// Takes the result of a graph apart: (how it ended, returned value, variables...). A variable that
/// the statements can't delete, and that the graph left without a value, is one that it did not
/// touch: it stays what it is.
void take_result(RegionState& state, Entered& entered, PyObject* result, PyObject* variables) {
  const Py_ssize_t count = PyTuple_GET_SIZE(state.assigned.get());
  TORCHJANUS_CHECK(PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == count + 2,
                   "region: the graph's result has the wrong form");
  entered.end = static_cast<End>(python::to_integer(PyTuple_GET_ITEM(result, 0)));
  entered.returned = python::Object::borrow(PyTuple_GET_ITEM(result, 1));
  entered.values.clear();
  entered.unbound.clear();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(state.assigned.get(), i);
    PyObject* value = PyTuple_GET_ITEM(result, i + 2);
    if (value == speculate::unbound_marker() && !state.deletes(name))
      if (PyObject* untouched = PyDict_GetItemWithError(variables, name)) value = untouched;
    entered.unbound.push_back(value == speculate::unbound_marker());
    entered.values.push_back(python::Object::borrow(entered.unbound.back() ? Py_None : value));
  }
}

/// At module level the variables are globals.
void write_globals(RegionState& state, Entered& entered, PyObject* globals) {
  for (size_t i = 0; i < entered.values.size(); ++i) {
    PyObject* name = PyTuple_GET_ITEM(state.assigned.get(), static_cast<Py_ssize_t>(i));
    if (!entered.unbound[i])
      python::check_status(PyDict_SetItem(globals, name, entered.values[i].get()));
    else if (PyDict_Contains(globals, name) == 1)
      python::check_status(PyDict_DelItem(globals, name));
  }
  entered.values.clear();
}

PyObject* enter(PyObject* object, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    PyObject* globals = PyEval_GetGlobals();
    const python::Object variables = python::Object::borrow(PyEval_GetLocals());
    if (!variables) return nullptr;
    Call call;
    call.tree = state.tree.get();
    call.variables = variables.get();
    call.globals = globals;
    call.facts_key = state.module.get();
    Dispatcher::Attempt attempt = state.dispatcher.attempt(call);
    Entered& entered = state.here();
    entered.profile = !attempt.ran && attempt.otherwise == Dispatcher::Otherwise::profile;
    if (attempt.ran && !attempt.result) return nullptr;
    if (attempt.ran) {
      take_result(state, entered, attempt.result.get(), variables.get());
      if (state.at_module_level) write_globals(state, entered, globals);
    }
    return PyBool_FromLong(attempt.ran ? 1 : 0);
  });
}

PyObject* profiling(PyObject* object, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    if (state.dispatcher.settled()) Py_RETURN_FALSE;
    Entered& entered = state.here();
    if (!entered.profile) Py_RETURN_FALSE;
    entered.profile = false;
    entered.profile_starts.push_back(speculate::now());
    speculate::ProfileRun::begin();
    Py_RETURN_TRUE;
  });
}

PyObject* leave(PyObject* object, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    Entered& entered = state.here();
    if (!entered.profile_starts.empty()) {
      speculate::ProfileRun::end();
      state.dispatcher.profile_finished(speculate::now() - entered.profile_starts.back());
      entered.profile_starts.pop_back();
    }
    Py_RETURN_NONE;
  });
}

// --- what the graph gave -------------------------------------------------------------------------

PyObject* active(PyObject* object, PyObject* /*unused*/) {
  return PyBool_FromLong(state_of(object).dispatcher.settled() ? 0 : 1);
}

PyObject* values(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] {
    const std::vector<python::Object> taken = std::move(state_of(object).here().values);
    return python::tuple(taken).release();
  });
}

PyObject* is_unbound(PyObject* object, PyObject* index) {
  return guarded([&]() -> PyObject* {
    const std::vector<bool>& unbound = state_of(object).here().unbound;
    const int64_t wanted = python::to_integer(index);
    bool found = false;
    for (size_t i = 0; i < unbound.size(); ++i)
      if (unbound[i] && (wanted == -1 || static_cast<size_t>(wanted) == i)) found = true;
    return PyBool_FromLong(found ? 1 : 0);
  });
}

PyObject* broke(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return PyBool_FromLong(state_of(object).here().end == End::break_); });
}
PyObject* returned(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return PyBool_FromLong(state_of(object).here().end == End::return_); });
}
PyObject* returned_value(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] {
    python::Object value = std::move(state_of(object).here().returned);
    return value ? value.release() : Py_NewRef(Py_None);
  });
}

// --- making and reporting ------------------------------------------------------------------------

int first_line(const syntax::Tree& tree) {
  return tree.body.empty() ? 0 : tree.body.front()->span.line;
}

python::Object assigned_names(const syntax::Tree& tree) {
  std::vector<python::Object> names;
  for (const std::string& name : tree.scope->assigned) names.push_back(python::string(name));
  return python::tuple(names);
}

/// Names in `del` statements and after `except ... as`.
python::Object deleted_names(PyObject* module) {
  const python::Object deletion = python::import_attribute("ast", "Delete");
  const python::Object handler = python::import_attribute("ast", "ExceptHandler");
  const python::Object walk = python::import_attribute("ast", "walk");
  python::Object names = python::check(PySet_New(nullptr));
  const auto add = [&](const python::Object& name) {
    if (name && PyUnicode_Check(name.get()))
      python::check_status(PySet_Add(names.get(), name.get()));
  };
  for (const python::Object& node : python::elements(python::call(walk.get(), {module}).get())) {
    if (PyObject_IsInstance(node.get(), handler.get()) == 1)
      add(python::try_attribute(node.get(), "name"));
    if (PyObject_IsInstance(node.get(), deletion.get()) != 1) continue;
    for (const python::Object& part :
         python::elements(python::call(walk.get(), {node.get()}).get()))
      add(python::try_attribute(part.get(), "id"));
  }
  return names;
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"module", "file", "name", "at_module_level", "class_name", nullptr};
  PyObject* module = nullptr;
  const char *file = nullptr, *name = nullptr, *class_name = nullptr;
  int at_module_level = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "Ossp|z:Region", const_cast<char**>(names),
                                  &module, &file, &name, &at_module_level, &class_name) == 0)
    return nullptr;
  return guarded([&]() -> PyObject* {
    const auto tree = syntax::tree_of_statements(module, file, name, at_module_level != 0, {},
                                                 class_name == nullptr ? "" : class_name);
    if (tree == nullptr) {
      PyErr_SetString(PyExc_ValueError, "Region: the statements have no tree");
      return nullptr;
    }
    auto state = std::make_unique<RegionState>(name, file, first_line(*tree));
    state->module = python::Object::borrow(module);
    state->tree = tree;
    state->at_module_level = at_module_level != 0;
    state->assigned = assigned_names(*tree);
    state->deleted = deleted_names(module);
    state->dispatcher.roots = roots_of_call;
    auto* made = reinterpret_cast<RegionObject*>(type->tp_alloc(type, 0));
    if (made == nullptr) return nullptr;
    made->state = state.release();
    return reinterpret_cast<PyObject*>(made);
  });
}

/// A script's regions die with its code, before the report at the end is written: what is counted
/// of them is kept.
void bury(std::unique_ptr<RegionState> state) {
  static auto* buried = new std::vector<std::unique_ptr<RegionState>>();
  state->entered.clear();
  buried->push_back(std::move(state));
}

void deallocate(PyObject* object) {
  auto* region = reinterpret_cast<RegionObject*>(object);
  if (region->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  bury(std::unique_ptr<RegionState>(region->state));
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* represent(PyObject* object) {
  const Dispatcher& dispatcher = state_of(object).dispatcher;
  return PyUnicode_FromFormat("<torchjanus.Region %s at %s:%d>", dispatcher.name().c_str(),
                              dispatcher.file().c_str(), dispatcher.line());
}

PyObject* get_assigned(PyObject* object, void* /*unused*/) {
  return Py_NewRef(state_of(object).assigned.get());
}

PyObject* stats(PyObject* object, PyObject* /*unused*/) {
  return stats_of(state_of(object).dispatcher);
}
PyObject* snapshot(PyObject* object, PyObject* /*unused*/) {
  return snapshot_of(state_of(object).dispatcher);
}
PyObject* explain(PyObject* object, PyObject* /*unused*/) { return render("explain", object); }
PyObject* graph_text(PyObject* object, PyObject* /*unused*/) { return render("graph", object); }

PyMethodDef methods[] = {
    {"active", active, METH_NOARGS, "False once the region stays imperative for good."},
    {"enter", enter, METH_NOARGS, "Runs the statements as a graph if it can; whether it did."},
    {"profiling", profiling, METH_NOARGS, "Whether this run is to be profiled; begins that."},
    {"leave", leave, METH_NOARGS, "Ends a profile run."},
    {"values", values, METH_NOARGS, "The values of `assigned` after the graph ran, once."},
    {"is_unbound", is_unbound, METH_O, "Whether variable i (-1: any) has no value."},
    {"broke", broke, METH_NOARGS, "Whether the statements ended with break."},
    {"returned", returned, METH_NOARGS, "Whether the statements ended with return."},
    {"returned_value", returned_value, METH_NOARGS, "What they returned, once."},
    {"explain", explain, METH_NOARGS, "What was converted and what was not, as text."},
    {"graph", graph_text, METH_NOARGS, "The graphs in the cache in their textual form."},
    {"stats", stats, METH_NOARGS, "Counters, durations in milliseconds, and reasons, as a dict."},
    {"snapshot", snapshot, METH_NOARGS, "Everything that explain() renders, as a dict."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"assigned", get_assigned, nullptr, "Names of the variables the statements may set.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(RegionObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

template <class Pointer>
void* slot(Pointer pointer) {
  return reinterpret_cast<void*>(pointer);
}

PyType_Slot slots[] = {{Py_tp_new, slot(create)},
                       {Py_tp_dealloc, slot(deallocate)},
                       {Py_tp_repr, slot(represent)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"torchjanus.Region", sizeof(RegionObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* region_type() {
  static PyObject* type = python::check(PyType_FromSpec(&spec)).release();
  return type;
}

speculate::Dispatcher* dispatcher_of_region(PyObject* object) {
  if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(region_type())) return nullptr;
  return &state_of(object).dispatcher;
}

RegionParts parts_of_region(PyObject* object) {
  return {state_of(object).module.get(), state_of(object).tree.get()};
}

}  // namespace janus::bind
