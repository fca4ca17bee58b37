#include "bind/co_execution_scope.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "bind/region.h"
#include "python/type_slots.h"

namespace janus::bind {

namespace {

/// A run of a scope.
struct Run {
  explicit Run(CoExecutionScope* of) : scope(of) {}
  CoExecutionScope* scope;
  CoExecution::Turn turn;
  uint64_t news = 0;  ///< when the turn began
};

/// This thread's, the innermost last.
thread_local std::vector<std::unique_ptr<Run>> runs;

/// The innermost around this thread's innermost run that was tried, and is eager for good.
const CoExecution* given_up_around() {
  for (const auto& run : std::views::reverse(runs) | std::views::drop(1))
    if (run->scope->co_execution().is_given_up()) return &run->scope->co_execution();
  return nullptr;
}

}  // namespace

void CoExecutionScope::enter() { runs.push_back(std::make_unique<Run>(this)); }

bool CoExecutionScope::begin_iteration(bool may_count, uint64_t news) {
  if (runs.empty() || runs.back()->scope != this) return true;  // code that runs without its scope
  Run& run = *runs.back();
  if (run.turn.is_open) {
    const bool tells = may_count && news == run.news;
    const bool goes_on = co_execution_.end_iteration(run.turn);
    const bool is_decided = run.turn.stage == CoExecution::Stage::co_executed;
    if (goes_on && (is_decided ? may_count : tells)) return true;
    if (!co_execution_.end(run.turn, tells)) return false;
  }
  if (!may_count || co_execution_.rests()) return true;
  run.news = news;
  run.turn.around = given_up_around();
  co_execution_.begin(run.turn, /*with_frame=*/true);
  return true;
}

bool CoExecutionScope::exit(bool is_error) {
  const auto is_mine = [this](const auto& run) { return run->scope == this; };
  if (std::ranges::none_of(runs, is_mine)) return true;
  bool is_last = false;
  bool has_ended = true;
  while (!is_last) {  // runs beyond the last one are of code that was left without its end
    const std::unique_ptr<Run> run = std::move(runs.back());
    runs.pop_back();
    is_last = is_mine(run);
    if (!run->turn.is_open) continue;
    CoExecution& co_execution = run->scope->co_execution_;
    co_execution.end_iteration(run->turn);
    has_ended &= co_execution.end(run->turn, is_last && !is_error);
  }
  return has_ended;
}

// ---- The type ---------------------------------------------------------------------------------

namespace {

using python::slot;

struct ScopeObject {
  PyObject_HEAD std::shared_ptr<CoExecutionScope>* scope;
};

CoExecutionScope& scope_of(PyObject* object) {
  return **reinterpret_cast<ScopeObject*>(object)->scope;
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"regions", "is_loop", nullptr};
  PyObject* regions = nullptr;
  int is_loop = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "Op:CoExecutionScope",
                                  const_cast<char**>(names), &regions, &is_loop) == 0)
    return nullptr;
  try {
    auto scope = std::make_shared<CoExecutionScope>(is_loop != 0 ? CoExecution::Kind::loop
                                                                 : CoExecution::Kind::function);
    std::vector<PyObject*> of_iteration;
    const std::vector<python::Object> given = python::elements(regions);
    for (const python::Object& region : given) of_iteration.push_back(region.get());
    if (!put_into_scope(of_iteration, scope)) {
      PyErr_SetString(PyExc_TypeError, "CoExecutionScope: regions must be Regions, one or more");
      return nullptr;
    }
    auto* made = reinterpret_cast<ScopeObject*>(type->tp_alloc(type, 0));
    if (made == nullptr) return nullptr;
    made->scope = new std::shared_ptr<CoExecutionScope>(std::move(scope));
    return reinterpret_cast<PyObject*>(made);
  } catch (const python::ErrorSet&) {
    return nullptr;
  }
}

void deallocate(PyObject* object) {
  delete reinterpret_cast<ScopeObject*>(object)->scope;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* begin_with(PyObject* object, PyObject* /*unused*/) {
  try {
    scope_of(object).enter();
    Py_RETURN_NONE;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* end_with(PyObject* object, PyObject* const* error, Py_ssize_t count) {
  const bool is_error = count > 0 && error[0] != Py_None;
  if (!scope_of(object).exit(is_error)) return nullptr;
  Py_RETURN_NONE;
}

/// Code that is pickled by value arrives without its scopes, as without its regions.
PyObject* reduce(PyObject* /*object*/, PyObject* /*protocol*/) {
  try {
    const python::Object made = python::import_attribute("torchjanus.regions", "Unconverted");
    return python::tuple({made, python::tuple({})}).release();
  } catch (const python::ErrorSet&) {
    return nullptr;
  }
}

PyMethodDef methods[] = {
    {"__enter__", begin_with, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(end_with)),
     METH_FASTCALL, "Ends the last iteration, and runs all that is pending."},
    {"__reduce_ex__", reduce, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

constexpr const char* kDoc = "A loop or function of a script whose iterations may be co-executed.";

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                       {Py_tp_new, slot(create)},
                       {Py_tp_dealloc, slot(deallocate)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"torchjanus.CoExecutionScope", sizeof(ScopeObject), 0, Py_TPFLAGS_DEFAULT,
                    slots};

}  // namespace

PyObject* co_execution_scope_type() {
  static PyObject* type = python::check(PyType_FromSpec(&spec)).release();
  return type;
}

}  // namespace janus::bind
