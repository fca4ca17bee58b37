// The hooks as a C class, the counting iterator, and the per-thread state of profiled runs.
#include "speculate/hooks.h"

#include <map>

#include "base/check.h"
#include "base/options.h"
#include "python/type_slots.h"
#include "speculate/instrument.h"
#include "syntax/source.h"

namespace janus::speculate {
namespace {

using python::Object;
using python::slot;

// --- the state of a thread -----------------------------------------------------------------------

/// A running `while`: its frame and node.
struct WhileKey {
  PyFrameObject* frame;
  NodeFact* fact;
  auto operator<=>(const WhileKey&) const = default;
};

struct ThreadState {
  int active_runs = 0;
  std::vector<Object> kept;  ///< operands that decided an `and` or `or` under evaluation
  size_t kept_before = 0;    ///< the size of `kept` when the outermost run began
  /// Iterations of loops whose end was not seen. Frames may be dead: they are only compared.
  std::map<WhileKey, int64_t> trips;
};

ThreadState& thread_state() {
  thread_local ThreadState state;
  return state;
}

// --- the hooks object ----------------------------------------------------------------------------

struct HooksObject {
  PyObject_HEAD Facts* facts;
};

NodeFact& fact_of(PyObject* hooks, PyObject* number) {
  NodeFacts& nodes = reinterpret_cast<HooksObject*>(hooks)->facts->nodes;
  return nodes.at(static_cast<size_t>(PyLong_AsLong(number)));  // written by instrument.cpp
}

PyObject* new_reference(PyObject* object) {
  Py_INCREF(object);
  return object;
}

/// Calls `record`. Its errors are ours and must not reach the program.
template <class Record>
void quietly(Record&& record) {
  const bool had_error = PyErr_Occurred() != nullptr;
  try {
    record();
  } catch (const python::ErrorSet&) {
    if (!had_error) PyErr_Clear();
  } catch (const std::exception& error) {
    log("profile", error.what());
  }
}

void count_test(PyObject* hooks, PyObject* number, bool truth) {
  NodeFact& fact = fact_of(hooks, number);
  ++(truth ? fact.taken : fact.not_taken);
}

/// Counts an outcome at the facts in the first `count` arguments.
void count_tests(PyObject* hooks, PyObject* const* arguments, Py_ssize_t count, bool truth) {
  if (!ProfileRun::active()) return;
  for (Py_ssize_t i = 0; i < count; ++i) count_test(hooks, arguments[i], truth);
}

uint64_t tensors_seen = 0;

PyObject* hook_value(PyObject* hooks, PyObject* const* arguments, Py_ssize_t) {
  if (ProfileRun::active()) {
    if (has_tensor_access() && tensor_access().is_tensor(arguments[1])) ++tensors_seen;
    quietly([&] { fact_of(hooks, arguments[0]).value.see(arguments[1]); });
  }
  return new_reference(arguments[1]);
}

PyObject* hook_test(PyObject* hooks, PyObject* const* arguments, Py_ssize_t) {
  const int truth = PyObject_IsTrue(arguments[1]);
  if (truth < 0) return nullptr;
  count_tests(hooks, arguments, 1, truth == 1);
  return new_reference(truth == 1 ? Py_True : Py_False);
}

PyObject* hook_taken(PyObject* hooks, PyObject* const* arguments, Py_ssize_t count) {
  count_tests(hooks, arguments, count, true);
  return new_reference(Py_True);
}

PyObject* hook_not_taken(PyObject* hooks, PyObject* const* arguments, Py_ssize_t count) {
  count_tests(hooks, arguments, count, false);
  return new_reference(Py_False);
}

/// Sets aside for kept() an operand that decides: true for `or`, false for `and`.
PyObject* operand(PyObject* hooks, PyObject* const* arguments, bool decides) {
  const int truth = PyObject_IsTrue(arguments[1]);
  if (truth < 0) return nullptr;
  count_tests(hooks, arguments, 1, truth == 1);
  if ((truth == 1) == decides) thread_state().kept.push_back(Object::borrow(arguments[1]));
  return new_reference(truth == 1 ? Py_True : Py_False);
}

PyObject* hook_and_operand(PyObject* hooks, PyObject* const* arguments, Py_ssize_t) {
  return operand(hooks, arguments, false);
}

PyObject* hook_or_operand(PyObject* hooks, PyObject* const* arguments, Py_ssize_t) {
  return operand(hooks, arguments, true);
}

PyObject* hook_kept(PyObject*, PyObject* const*, Py_ssize_t) {
  // The newest one is ours: code between the operand and here leaves one behind only by an
  // exception, and then this is not reached.
  std::vector<Object>& kept = thread_state().kept;
  if (kept.empty()) {
    PyErr_SetString(PyExc_SystemError, "torchjanus: an operand was lost");
    return nullptr;
  }
  Object result = std::move(kept.back());
  kept.pop_back();
  return result.release();
}

/// Starts the count of a `while`. An old count belongs to a loop that a break or exception ended.
PyObject* hook_enter(PyObject* hooks, PyObject* const* arguments, Py_ssize_t) {
  if (ProfileRun::active()) {
    NodeFact& fact = fact_of(hooks, arguments[0]);
    auto& trips = thread_state().trips;
    const auto [place, is_new] = trips.try_emplace({PyEval_GetFrame(), &fact}, 0);
    if (!is_new) fact.see_trips(std::exchange(place->second, 0));
  }
  return new_reference(Py_None);
}

/// Counts an iteration of loop arguments[1], or its end by its test.
void count_trip(PyObject* hooks, PyObject* const* arguments, bool goes_on) {
  if (!ProfileRun::active()) return;
  NodeFact& fact = fact_of(hooks, arguments[1]);
  auto& trips = thread_state().trips;
  const auto place = trips.find({PyEval_GetFrame(), &fact});
  if (place == trips.end()) return;  // the run began inside the loop
  if (goes_on) {
    ++place->second;
  } else {
    fact.see_trips(place->second);
    trips.erase(place);
  }
}

PyObject* hook_again(PyObject* hooks, PyObject* const* arguments, Py_ssize_t count) {
  count_trip(hooks, arguments, true);
  return hook_taken(hooks, arguments, count);
}

PyObject* hook_done(PyObject* hooks, PyObject* const* arguments, Py_ssize_t count) {
  count_trip(hooks, arguments, false);
  return hook_not_taken(hooks, arguments, count);
}

// --- the iterator that counts --------------------------------------------------------------------

/// Wraps an iterable until the loop asks for its iterator, then that iterator. So the loop's own
/// instruction raises what iter() raises.
struct CountingIterator {
  PyObject_HEAD PyObject* iterated;  ///< the iterable, then its iterator
  bool is_iterator;
  Facts* facts;
  size_t fact, also;
  int64_t count;
  bool is_recorded;
};

CountingIterator* counting(PyObject* object) { return reinterpret_cast<CountingIterator*>(object); }

void record_count(CountingIterator* self) {
  if (!self->is_iterator || std::exchange(self->is_recorded, true)) return;
  self->facts->nodes.at(self->fact).see_trips(self->count);
  if (self->also != self->fact) self->facts->nodes.at(self->also).see_trips(self->count);
}

PyObject* counting_iter(PyObject* object) {
  CountingIterator* self = counting(object);
  if (!self->is_iterator) {
    PyObject* iterator = PyObject_GetIter(self->iterated);
    if (iterator == nullptr) return nullptr;
    Py_SETREF(self->iterated, iterator);
    self->is_iterator = true;
  }
  return new_reference(object);
}

PyObject* counting_next(PyObject* object) {
  CountingIterator* self = counting(object);
  PyObject* result = Py_TYPE(self->iterated)->tp_iternext(self->iterated);
  if (result == nullptr) {
    record_count(self);
    return nullptr;
  }
  ++self->count;
  if (ProfileRun::active())
    quietly([&] {
      for (const size_t fact : {self->fact, self->also})
        self->facts->nodes.at(fact).element.see(result);
    });
  return result;
}

int counting_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(counting(object)->iterated);
  return 0;
}

int counting_clear(PyObject* object) {
  Py_CLEAR(counting(object)->iterated);
  return 0;
}

void counting_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  record_count(counting(object));  // the loop ended by break, return or an exception
  counting_clear(object);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyTypeObject* counting_type() {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, slot(counting_dealloc)}, {Py_tp_traverse, slot(counting_traverse)},
      {Py_tp_clear, slot(counting_clear)},     {Py_tp_iter, slot(counting_iter)},
      {Py_tp_iternext, slot(counting_next)},   {0, nullptr}};
  static PyType_Spec spec = {"torchjanus._core.CountingIterator", sizeof(CountingIterator), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  static auto* const type =
      reinterpret_cast<PyTypeObject*>(python::check(PyType_FromSpec(&spec)).release());
  return type;
}

PyObject* hook_loop(PyObject* hooks, PyObject* const* arguments, Py_ssize_t) {
  if (!ProfileRun::active()) return new_reference(arguments[1]);
  auto* self = PyObject_GC_New(CountingIterator, counting_type());
  if (self == nullptr) return nullptr;
  self->iterated = new_reference(arguments[1]);
  self->is_iterator = false;
  self->facts = reinterpret_cast<HooksObject*>(hooks)->facts;
  self->fact = static_cast<size_t>(PyLong_AsLong(arguments[0]));
  self->also = static_cast<size_t>(PyLong_AsLong(arguments[2]));
  self->count = 0;
  self->is_recorded = false;
  auto* result = reinterpret_cast<PyObject*>(self);
  PyObject_GC_Track(result);
  return result;
}

// --- objects called in place of others -----------------------------------------------------------

/// Calls `target` but looks like `original`, since messages about the call may name it.
struct StandIn {
  PyObject_HEAD PyObject* original;
  PyObject* target;
};

StandIn* stand_in(PyObject* object) { return reinterpret_cast<StandIn*>(object); }

PyObject* stand_in_call(PyObject* object, PyObject* arguments, PyObject* keywords) {
  return PyObject_Call(stand_in(object)->target, arguments, keywords);
}
PyObject* stand_in_attribute(PyObject* object, PyObject* name) {
  return PyObject_GetAttr(stand_in(object)->original, name);
}
PyObject* stand_in_text(PyObject* object) { return PyObject_Str(stand_in(object)->original); }

int stand_in_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(stand_in(object)->original);
  Py_VISIT(stand_in(object)->target);
  return 0;
}

int stand_in_clear(PyObject* object) {
  Py_CLEAR(stand_in(object)->original);
  Py_CLEAR(stand_in(object)->target);
  return 0;
}

void stand_in_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  stand_in_clear(object);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

Object make_stand_in(PyObject* original, const Object& target) {
  static PyType_Slot slots[] = {{Py_tp_dealloc, slot(stand_in_dealloc)},
                                {Py_tp_traverse, slot(stand_in_traverse)},
                                {Py_tp_clear, slot(stand_in_clear)},
                                {Py_tp_call, slot(stand_in_call)},
                                {Py_tp_getattro, slot(stand_in_attribute)},
                                {Py_tp_str, slot(stand_in_text)},
                                {0, nullptr}};
  static PyType_Spec spec = {"torchjanus._core.StandIn", sizeof(StandIn), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  static auto* const type =
      reinterpret_cast<PyTypeObject*>(python::check(PyType_FromSpec(&spec)).release());
  if (!target) return {};
  auto* self = PyObject_GC_New(StandIn, type);
  if (self == nullptr) throw python::ErrorSet();
  self->original = new_reference(original);
  self->target = new_reference(target.get());
  auto* result = reinterpret_cast<PyObject*>(self);
  PyObject_GC_Track(result);
  return Object::steal(result);
}

// --- callees -------------------------------------------------------------------------------------

CalleePolicy& callee_policy() {
  static CalleePolicy policy;
  return policy;
}

/// The identity of a callable in facts. Methods count as their functions, which stay the same.
PyObject* identity_of(PyObject* callee) {
  if (PyMethod_Check(callee)) return PyMethod_GET_FUNCTION(callee);
  if (!PyCFunction_Check(callee)) return callee;
  PyObject* self = PyCFunction_GET_SELF(callee);
  if (self == nullptr || PyModule_Check(self) || PyType_Check(self)) return callee;
  const Object name = python::string(reinterpret_cast<PyCFunctionObject*>(callee)->m_ml->ml_name);
  PyObject* descriptor = _PyType_Lookup(Py_TYPE(self), name.get());
  return descriptor == nullptr ? callee : descriptor;
}

bool is_skipped(PyObject* function) {
  return callee_policy().skip != nullptr && callee_policy().skip(function);
}

/// The instrumented copy of a plain function, or null.
Object profiled_function(PyObject* function) {
  if (is_skipped(function)) return {};
  Object copy = instrumented_function(function);
  if (!copy) return {};
  if (Facts* facts = profiles().find(syntax::original_code(PyFunction_GET_CODE(copy.get()))))
    ++facts->runs;
  return copy;
}

/// The Python function behind a method or a converted function, or null.
PyObject* plain_function(PyObject* function) {
  return PyFunction_Check(function) ? function : function_of_converted(function);
}

Object bound(const Object& function, PyObject* self) {
  return function ? python::check(PyMethod_New(function.get(), self)) : Object();
}

Object profiled_partial(PyObject* callee);

/// The object to call in place of `callee`, or null to call it itself. Effects, frames and messages
/// are the same.
Object profiled_callee(PyObject* callee) {
  static PyObject* const partial = python::import_attribute("functools", "partial").release();
  static PyObject* const call_name = python::interned("__call__");
  if (PyFunction_Check(callee)) return profiled_function(callee);
  if (PyMethod_Check(callee)) {
    PyObject* function = plain_function(PyMethod_GET_FUNCTION(callee));
    if (function == nullptr || !PyFunction_Check(function)) return {};
    return bound(profiled_function(function), PyMethod_GET_SELF(callee));
  }
  if (PyCFunction_Check(callee) || PyType_Check(callee)) return {};
  PyTypeObject* type = Py_TYPE(callee);
  if (reinterpret_cast<PyObject*>(type) == partial) return profiled_partial(callee);
  if (PyObject* function = plain_function(callee)) return profiled_callee(function);
  // An object of a Python class, such as a module: calls its class's __call__.
  PyObject* method = _PyType_Lookup(type, call_name);
  if (method == nullptr || !PyFunction_Check(method)) return {};
  return make_stand_in(callee, bound(profiled_function(method), callee));
}

Object profiled_partial(PyObject* callee) {
  const Object function = profiled_callee(python::attribute(callee, "func").get());
  if (!function) return {};
  std::vector<Object> arguments = {function};
  for (Object& argument : python::elements(python::attribute(callee, "args").get()))
    arguments.push_back(std::move(argument));
  return make_stand_in(callee,
                       python::check(PyObject_Call(reinterpret_cast<PyObject*>(Py_TYPE(callee)),
                                                   python::tuple(arguments).get(),
                                                   python::attribute(callee, "keywords").get())));
}

Object profiled_callee_or_itself(PyObject* callee) {
  Object result;
  quietly([&] { result = profiled_callee(callee); });
  return result ? result : Object::borrow(callee);
}

PyObject* hook_callee(PyObject* hooks, PyObject* const* arguments, Py_ssize_t) {
  PyObject* callee = arguments[2];
  if (!ProfileRun::active()) return new_reference(callee);
  quietly([&] {
    fact_of(hooks, arguments[0]).callee.see(identity_of(callee));
    fact_of(hooks, arguments[1]).value.see(callee);
  });
  return profiled_callee_or_itself(callee).release();
}

// --- the class -----------------------------------------------------------------------------------

using Hook = PyObject*(PyObject*, PyObject* const*, Py_ssize_t);

PyMethodDef method(const char* name, Hook* function) {
  return {name, reinterpret_cast<PyCFunction>(slot(function)), METH_FASTCALL, nullptr};
}

/// Pickled with the code of a region, which needs no hooks where it is read
/// (torchjanus/regions.py).
PyObject* hooks_reduce(PyObject* /*hooks*/, PyObject* /*protocol*/) {
  return Py_BuildValue("(O())", Py_TYPE(Py_None));
}

PyTypeObject* hooks_type() {
  static PyMethodDef methods[] = {method(hook::value, hook_value),
                                  method(hook::callee, hook_callee),
                                  method(hook::test, hook_test),
                                  method(hook::taken, hook_taken),
                                  method(hook::not_taken, hook_not_taken),
                                  method(hook::and_operand, hook_and_operand),
                                  method(hook::or_operand, hook_or_operand),
                                  method(hook::kept, hook_kept),
                                  method(hook::loop, hook_loop),
                                  method(hook::enter, hook_enter),
                                  method(hook::again, hook_again),
                                  method(hook::done, hook_done),
                                  {"__reduce_ex__", hooks_reduce, METH_O, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
  static PyType_Spec spec = {"torchjanus._core.Hooks", sizeof(HooksObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type =
      reinterpret_cast<PyTypeObject*>(python::check(PyType_FromSpec(&spec)).release());
  return type;
}

}  // namespace

Object make_hooks(Facts& facts) {
  PyTypeObject* type = hooks_type();
  Object result = python::check(type->tp_alloc(type, 0));
  reinterpret_cast<HooksObject*>(result.get())->facts = &facts;
  return result;
}

void ProfileRun::begin() {
  ThreadState& state = thread_state();
  if (state.active_runs++ == 0) state.kept_before = state.kept.size();
}

void ProfileRun::end() {
  ThreadState& state = thread_state();
  TORCHJANUS_CHECK(state.active_runs > 0, "profile: a run ends that did not begin");
  if (--state.active_runs > 0) return;
  for (const auto& [loop, count] : state.trips) loop.fact->see_trips(count);
  state.trips.clear();
  // Operands that expressions with exceptions have left. Releasing them may run code.
  std::vector<Object> left_over;
  for (; state.kept.size() > state.kept_before; state.kept.pop_back())
    left_over.push_back(std::move(state.kept.back()));
}

uint64_t ProfileRun::tensors_seen() { return speculate::tensors_seen; }

bool ProfileRun::active() { return thread_state().active_runs > 0; }

Object profiled_call(PyObject* function, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* keyword_names) {
  const ProfileRun run;
  const Object callee = profiled_callee_or_itself(function);
  return python::check(
      PyObject_Vectorcall(callee.get(), arguments, static_cast<size_t>(count), keyword_names));
}

void prepare_profiling(CalleePolicy policy) {
  callee_policy() = policy;
  for (const char* name : {"ast", "functools", "linecache", "warnings"})
    python::import_module(name);
}

PyObject* function_of_converted(PyObject* callable) {
  return callee_policy().unwrap == nullptr ? nullptr : callee_policy().unwrap(callable);
}

}  // namespace janus::speculate
