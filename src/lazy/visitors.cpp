#include "lazy/visitors.h"

#include <Python.h>

#include <atomic>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "python/next_event.h"
#include "python/object.h"
#include "python/version.h"

namespace janus::lazy {

namespace {

std::atomic<int> noted_threads = 0;
void (*make_visitor)() = nullptr;

/// Numbers of the threads that look for what is pending, or will. Guarded by Python's lock.
std::unordered_set<uint64_t>& visitors() {
  static auto* const all = new std::unordered_set<uint64_t>;
  return *all;
}

/// The first event of a thread.
int on_event(PyObject* /*unused*/, PyFrameObject* /*frame*/, int /*event*/, PyObject* /*value*/) {
  make_visitor();
  return python::end_events(on_event);
}

/// Threads that are profiled by the program are left alone.
void watch_other_threads() {
  PyThreadState* const mine = PyThreadState_Get();
  visitors().insert(PyThreadState_GetID(mine));
  std::vector<PyThreadState*> found;
  PyThreadState* each = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; each != nullptr; each = PyThreadState_Next(each)) {
    while (!python::is_filled_in(each)) std::this_thread::yield();
    if (each->c_profilefunc == nullptr && visitors().insert(PyThreadState_GetID(each)).second)
      found.push_back(each);
  }
  python::call_at_next_event(found, on_event);
}

// ---- New threads ------------------------------------------------------------------------------

/// CPython's own functions.
PyCFunction start_thread = nullptr;
PyCFunctionWithKeywords start_joinable_thread = nullptr;

/// The new thread waits for Python's lock until this returns.
PyObject* watched(PyObject* started) {
  if (started != nullptr && has_visits()) watch_other_threads();
  return started;
}

PyObject* start_watched_thread(PyObject* self, PyObject* arguments) {
  return watched(start_thread(self, arguments));
}

PyObject* start_watched_joinable_thread(PyObject* self, PyObject* arguments, PyObject* named) {
  return watched(start_joinable_thread(self, arguments, named));
}

/// Puts a function in the place of a function of the module `_thread`, if that is there, written in
/// C, and has these flags. What is there now, or null.
template <typename Function>
Function replace(const char* name, int flags, Function function) {
  const python::Object module = python::check(PyImport_ImportModule("_thread"));
  if (PyObject_HasAttrString(module.get(), name) == 0) return nullptr;
  const python::Object found = python::check(PyObject_GetAttrString(module.get(), name));
  if (!PyCFunction_Check(found.get())) return nullptr;
  PyMethodDef* const definition = reinterpret_cast<PyCFunctionObject*>(found.get())->m_ml;
  if (definition->ml_flags != flags) return nullptr;
  const auto before = reinterpret_cast<void*>(definition->ml_meth);
  definition->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
  return reinterpret_cast<Function>(before);
}

/// `threading.Thread` starts joinable threads since Python 3.13.
void watch_new_threads() {
  static bool has_begun = false;
  if (std::exchange(has_begun, true)) return;
  start_thread = replace<PyCFunction>("start_new_thread", METH_VARARGS, start_watched_thread);
  start_joinable_thread = replace<PyCFunctionWithKeywords>(
      "start_joinable_thread", METH_VARARGS | METH_KEYWORDS, start_watched_joinable_thread);
}

}  // namespace

void begin_visits(void (*visit)()) {
  make_visitor = visit;
  watch_new_threads();
  if (noted_threads++ == 0) visitors().clear();
  watch_other_threads();
}

void end_visits() { --noted_threads; }

bool has_visits() { return noted_threads > 0; }

}  // namespace janus::lazy
