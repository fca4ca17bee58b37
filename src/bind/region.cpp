// How rewritten code uses a Region R of statements S (torchjanus/regions.py):
//
//   match R.enter():
//     case 0: S                           # runs in Python
//     case 1:                             # S ran as a graph
//       if R.gives_all(-1): a, b = R.values(-1)
//       else:                             # one by one
//         if R.gives(0): a = R.value(0)
//         elif R.deletes(0): del a        # where S contains such a `del`
//       if R.broke(-1): break
//       if R.returned(-1): return R.returned_value()
//     case 2:                             # S is profiled
//       with R: <instrumented S>
//     case 3:                             # S is cut
//       with R:
//         match R.ran(0):                 # for each statement
//           case 0: <the first statement>     # with the bodies in it cut in turn
//           case 1: ...                       # it was part of a graph: its variables, as above
//           case 2: <the first statement, instrumented>
//
// `with` leaves a frame that an exception ends at the line that raised it, which `finally` would
// not. At module level enter() and ran() set the globals themselves. Several threads may be between
// these calls at once, and S may recurse. So each thread has its own results, and stacks of the
// open profile runs and of the open runs of cut statements. A KeyboardInterrupt between a call and
// its `with` leaves an element on a stack; runs of cut statements know their frame, so that such an
// element is recognised.
#include "bind/region.h"

#include <structmember.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/policy.h"
#include "base/printable.h"
#include "bind/co_execution_scope.h"
#include "bind/cuts.h"
#include "bind/frame_variables.h"
#include "bind/picture.h"
#include "bind/region_run.h"
#include "bind/region_state.h"
#include "bind/snapshot.h"
#include "bind/statement_results.h"
#include "python/type_slots.h"
#include "speculate/describe.h"
#include "speculate/facts.h"
#include "syntax/scope.h"
#include "syntax/source.h"

namespace janus::bind {
namespace {

using python::slot;
using speculate::Call;
using speculate::Dispatcher;

/// Runs `body`; C++ exceptions become Python's.
template <class Body>
PyObject* guarded(Body&& body) {
  try {
    return body();
  } catch (const python::ErrorSet&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// --- running -------------------------------------------------------------------------------------

PyObject* new_mode(Mode mode) { return PyLong_FromLong(static_cast<long>(mode)); }

PyObject* enter_region(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return new_mode(enter(state_of(object))); });
}

PyObject* statement_ran(PyObject* object, PyObject* argument) {
  return guarded([&] {
    const auto index = static_cast<size_t>(python::to_integer(argument));
    return new_mode(ran(state_of(object), index));
  });
}

PyObject* begin_with(PyObject* /*object*/, PyObject* /*unused*/) { Py_RETURN_NONE; }

PyObject* end_with(PyObject* object, PyObject* const* /*error*/, Py_ssize_t /*count*/) {
  return guarded([&] {
    leave(state_of(object));
    return Py_NewRef(Py_None);
  });
}

// --- the results of a graph ---------------------------------------------------------------------

PyObject* gives_all(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    const StatementResults& given = current_given(state);
    bool all = true;
    for (const size_t number : variables_of(state, python::to_integer(index)))
      all &= number < given.values.size() && bool(given.values[number]);
    return PyBool_FromLong(all ? 1 : 0);
  });
}

PyObject* values(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    StatementResults& given = current_given(state);
    const int64_t statement = python::to_integer(index);
    std::vector<python::Object> taken;
    for (const size_t number : variables_of(state, statement))
      taken.push_back(given.values.at(number));
    if (statement < 0) given.values.clear();  // keep no object alive
    return python::tuple(taken).release();
  });
}

PyObject* gives(PyObject* object, PyObject* number) {
  return guarded([&] {
    const StatementResults& given = current_given(state_of(object));
    const auto wanted = static_cast<size_t>(python::to_integer(number));
    return PyBool_FromLong(wanted < given.values.size() && given.values[wanted] ? 1 : 0);
  });
}

PyObject* value(PyObject* object, PyObject* number) {
  return guarded([&] {
    RegionState& state = state_of(object);
    python::Object& value =
        current_given(state).values.at(static_cast<size_t>(python::to_integer(number)));
    python::Object taken = value;
    if (!state.cuts->any()) value = {};  // keep no object alive
    return taken.release();
  });
}

PyObject* deletes(PyObject* object, PyObject* number) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    const StatementResults& given = current_given(state);
    const auto wanted = static_cast<size_t>(python::to_integer(number));
    if (wanted >= given.deleted.size() || !given.deleted[wanted]) Py_RETURN_FALSE;
    const FrameVariables variables;
    return PyBool_FromLong(PyMapping_HasKey(variables.get(), state.assigned[wanted].get()));
  });
}

PyObject* broke(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    return PyBool_FromLong(current_given(state).end == End::break_ &&
                           is_last(state, python::to_integer(index)));
  });
}
PyObject* continued(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    return PyBool_FromLong(current_given(state).end == End::continue_ &&
                           is_last(state, python::to_integer(index)));
  });
}
PyObject* returned(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    return PyBool_FromLong(current_given(state).end == End::return_ &&
                           is_last(state, python::to_integer(index)));
  });
}
PyObject* returned_value(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] {
    python::Object value = std::move(current_given(state_of(object)).returned);
    return value ? value.release() : Py_NewRef(Py_None);
  });
}

// --- making and reporting ------------------------------------------------------------------------

int first_line(const syntax::Tree& tree) {
  return tree.body.empty() ? 0 : tree.body.front()->span.line;
}

Dispatcher::Roots roots_of_call(const Call& call) {
  Dispatcher::Roots roots;
  for (const auto& [name, kind] : call.tree->scope->names) {
    PyObject* value = PyDict_GetItemString(call.variables, name.c_str());
    if (value != nullptr) roots.emplace_back(name, value);
  }
  return roots;
}

/// The names that statement `index` binds, as numbers in `assigned` (all, in order).
std::vector<size_t> bound_by(PyObject* module, Py_ssize_t index, const syntax::Tree& whole) {
  const python::Object statements = python::attribute(module, "body");
  const python::Object make = python::import_attribute("ast", "Module");
  const python::Object body =
      python::list({python::Object::borrow(PyList_GetItem(statements.get(), index))});
  const python::Object part = python::call(make.get(), {body.get(), python::list({}).get()});
  const auto tree =
      syntax::tree_of_statements(part.get(), *whole.file, whole.name, false, {}, whole.class_name);
  const std::vector<std::string>& assigned = whole.scope->assigned;
  std::vector<size_t> numbers;
  for (const std::string& name : tree->scope->assigned) {
    const auto place = std::lower_bound(assigned.begin(), assigned.end(), name);
    if (place != assigned.end() && *place == name)
      numbers.push_back(static_cast<size_t>(place - assigned.begin()));
  }
  return numbers;
}

void add_last_line(const python::Object& dict, const syntax::Tree& tree) {
  const python::Object line = python::integer(tree.body.back()->span.end_line);
  python::check_status(PyDict_SetItemString(dict.get(), "end_line", line.get()));
}

/// stats_of() or snapshot_of() of the region, with those of its parts if it is cut.
python::Object told(const RegionState& state, Dispatcher::Describe describe) {
  python::Object dict = python::check(describe(state.dispatcher));
  add_last_line(dict, *state.tree);
  if (state.scope != nullptr) add_co_execution(dict.get(), state.scope->co_execution());
  if (state.dispatcher.is_part) add_spent(dict.get(), "as_graph", state.as_graph);
  if (!state.cuts->any()) return dict;
  std::vector<python::Object> parts;
  for (const auto& segment : state.cuts->segments()) {
    parts.push_back(python::check(describe(segment->dispatcher)));
    add_last_line(parts.back(), *segment->tree);
    add_spent(parts.back().get(), "as_graph", segment->as_graph);
    add_spent(parts.back().get(), "in_python", state.cuts->in_python(*segment));
  }
  for (const python::Object& part : state.parts)
    if (state_of(part.get()).was_entered) parts.push_back(told(state_of(part.get()), describe));
  add_cuts(dict.get(), *state.cuts);
  if (!state.dispatcher.is_part) add_speed(dict.get(), *state.measurement);
  add_parts(dict.get(), parts);
  return dict;
}

std::unique_ptr<RegionState> make_state(PyObject* module,
                                        const std::shared_ptr<const syntax::Tree>& tree,
                                        bool at_module_level, bool is_part) {
  constexpr speculate::DispatchOptions kPart = {.least_work = policy::kLeastWorkOfPart};
  auto state = std::make_unique<RegionState>(tree->name, printable(*tree->file), first_line(*tree),
                                             is_part ? kPart : speculate::DispatchOptions());
  state->module = python::Object::borrow(module);
  state->tree = tree;
  state->at_module_level = at_module_level;
  for (const std::string& name : tree->scope->assigned) {
    state->all.push_back(state->assigned.size());
    state->assigned.push_back(python::string(name));
  }
  std::vector<std::vector<size_t>> bound;
  for (size_t i = 0; i < tree->body.size(); ++i)
    bound.push_back(bound_by(module, static_cast<Py_ssize_t>(i), *tree));
  state->cuts = std::make_unique<Cuts>(tree, tree->scope->assigned, std::move(bound));
  state->dispatcher.roots = roots_of_call;
  state->dispatcher.is_part = is_part;
  state->dispatcher.open_account();
  state->dispatcher.tell = [owner = state.get()](Dispatcher::Describe describe) {
    return guarded([&] { return told(*owner, describe).release(); });
  };
  return state;
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"module",     "file",  "name",          "at_module_level",
                                "class_name", "whole", "ends_function", nullptr};
  PyObject* module = nullptr;
  PyObject* file = nullptr;  // its bytes may be no UTF-8
  const char *name = nullptr, *class_name = nullptr;
  PyObject* whole = nullptr;  // the region whose statements contain this one
  int at_module_level = 0, ends_function = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "OUsp|zOp:Region", const_cast<char**>(names),
                                  &module, &file, &name, &at_module_level, &class_name, &whole,
                                  &ends_function) == 0)
    return nullptr;
  if (whole == Py_None) whole = nullptr;
  if (whole != nullptr && Py_TYPE(whole) != type) {
    PyErr_SetString(PyExc_TypeError, "Region: whole must be a Region");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const auto tree =
        syntax::tree_of_statements(module, python::to_string(file), name, at_module_level != 0, {},
                                   class_name == nullptr ? "" : class_name);
    if (tree == nullptr) {
      PyErr_SetString(PyExc_ValueError, "Region: the statements have no tree");
      return nullptr;
    }
    tree->ends_function = ends_function != 0;
    auto state = make_state(module, tree, at_module_level != 0, whole != nullptr);
    auto* made = reinterpret_cast<RegionObject*>(type->tp_alloc(type, 0));
    if (made == nullptr) return nullptr;
    made->state = state.release();
    auto* region = reinterpret_cast<PyObject*>(made);
    if (whole != nullptr) state_of(whole).parts.push_back(python::Object::borrow(region));
    return region;
  });
}

/// Keeps the counters of a region. A script's regions die with its code, before the final report is
/// written.
void bury(std::unique_ptr<RegionState> state) {
  static auto* buried = new std::vector<std::unique_ptr<RegionState>>();
  state->places.clear();
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
  return guarded([&] { return python::tuple(state_of(object).assigned).release(); });
}

PyObject* bound_by_statement(PyObject* object, PyObject* index) {
  return guarded([&] {
    std::vector<python::Object> numbers;
    for (const size_t number : variables_of(state_of(object), python::to_integer(index)))
      numbers.push_back(python::integer(static_cast<int64_t>(number)));
    return python::tuple(numbers).release();
  });
}

PyObject* can_be_cut(PyObject* object, PyObject* /*unused*/) {
  return PyBool_FromLong(state_of(object).cuts->possible() ? 1 : 0);
}

PyObject* expect_to_vary(PyObject* object, PyObject* variable) {
  const char* name = PyUnicode_AsUTF8(variable);
  if (name == nullptr) return nullptr;
  state_of(object).dispatcher.expect_to_vary(name);
  Py_RETURN_NONE;
}

PyObject* stats(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return told(state_of(object), stats_of).release(); });
}
PyObject* details(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return told(state_of(object), details_of).release(); });
}
PyObject* snapshot(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return told(state_of(object), snapshot_of).release(); });
}
PyObject* explain(PyObject* object, PyObject* /*unused*/) { return render("explain", object); }
PyObject* graph_text(PyObject* object, PyObject* /*unused*/) { return render("graph", object); }
PyObject* as_html(PyObject* object, PyObject* /*unused*/) { return render("as_html", object); }

/// Code that is pickled by value arrives without its regions, which know objects of this process.
PyObject* reduce(PyObject* /*object*/, PyObject* /*protocol*/) {
  return guarded([] {
    const python::Object made = python::import_attribute("torchjanus.regions", "Unconverted");
    return python::tuple({made, python::tuple({})}).release();
  });
}

PyMethodDef methods[] = {
    {"enter", enter_region, METH_NOARGS,
     "Runs the statements as a graph if it can; what is to be done."},
    {"__enter__", begin_with, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(end_with)),
     METH_FASTCALL, "Ends a profile run or a run of the cut statements."},
    {"ran", statement_ran, METH_O,
     "Cut: whether statement i has run in a graph, or what is to be done."},
    {"gives_all", gives_all, METH_O, "Whether a graph set all that statement i (-1: any) binds."},
    {"values", values, METH_O, "The values of what statement i (-1: any) binds."},
    {"gives", gives, METH_O, "Whether a graph set variable k."},
    {"value", value, METH_O, "What it set variable k to."},
    {"deletes", deletes, METH_O, "Whether it deleted variable k, which has a value still."},
    {"broke", broke, METH_O, "Whether the graph, which ran up to statement i, ended with break."},
    {"continued", continued, METH_O, "The same for continue."},
    {"returned", returned, METH_O, "The same for return."},
    {"returned_value", returned_value, METH_NOARGS, "What it returned, once."},
    {"bound_by", bound_by_statement, METH_O, "Numbers of the variables statement i binds."},
    {"can_be_cut", can_be_cut, METH_NOARGS, "Whether cutting may leave something for graphs."},
    {"expect_to_vary", expect_to_vary, METH_O, "Numbers of this variable will vary."},
    {"explain", explain, METH_NOARGS, "What was converted and what was not, as text."},
    {"graph", graph_text, METH_NOARGS, "The graphs in the cache in their textual form."},
    {"stats", stats, METH_NOARGS, "Counters, durations in milliseconds, and reasons, as a dict."},
    {"snapshot", snapshot, METH_NOARGS, "Everything that explain() renders, as a dict."},
    {"_repr_html_", as_html, METH_NOARGS, "What notebooks show of it."},
    {"_details", details, METH_NOARGS, "The same with what reports in HTML show."},
    {"__reduce_ex__", reduce, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"assigned", get_assigned, nullptr, "Names of the variables the statements may set.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(RegionObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

constexpr const char* kDoc = R"(A run of statements of a script that may run as a graph.

`torchjanus run` makes them of loop bodies and functions. What they have beside explain, graph, stats
and snapshot is called by the rewritten code (torchjanus/regions.py).
)";

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                       {Py_tp_new, slot(create)},
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

bool may_run_as_graph_at(PyObject* object, int line) {
  const RegionState& state = state_of(object);
  const auto holds = [line](const syntax::Tree& tree) {
    return line >= first_line(tree) && line <= tree.body.back()->span.end_line;
  };
  const auto is_open = [](const Dispatcher& dispatcher) {
    return !dispatcher.is_disabled() && dispatcher.counters().calls > 1;
  };
  if (!holds(*state.tree)) return false;
  if (!state.cuts->any()) return is_open(state.dispatcher);
  const auto segments = state.cuts->segments();
  return std::ranges::any_of(segments, [&](const std::shared_ptr<Segment>& segment) {
    return holds(*segment->tree) && is_open(segment->dispatcher);
  });
}

python::Object region_told(PyObject* region, Dispatcher::Describe describe) {
  return told(state_of(region), describe);
}

bool put_into_scope(const std::vector<PyObject*>& regions,
                    const std::shared_ptr<CoExecutionScope>& scope) {
  const auto is_region = [](PyObject* each) { return dispatcher_of_region(each) != nullptr; };
  if (regions.empty() || !std::ranges::all_of(regions, is_region)) return false;
  RegionState& first = state_of(regions.front());
  first.scope = scope;
  for (PyObject* const each : regions) first.of_iteration.push_back(&state_of(each));
  return true;
}

void make_part(PyObject* region) { state_of(region).dispatcher.is_part = true; }

void ask_for(PyObject* region) {
  state_of(region).dispatcher.account.close();
  for (const python::Object& part : state_of(region).parts) ask_for(part.get());
}

RegionParts parts_of_region(PyObject* object) {
  return {state_of(object).module.get(), state_of(object).tree.get()};
}

}  // namespace janus::bind
