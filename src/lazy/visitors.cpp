#include "lazy/visitors.h"

#include <Python.h>

#include <atomic>
#include <thread>
#include <unordered_set>

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
int on_event(PyObject* /*unused*/, PyFrameObject* frame, int /*event*/, PyObject* /*value*/) {
  make_visitor();
  return python::end_events(frame, on_event);
}

/// Threads that are profiled by the program are left alone.
void watch_other_threads() {
  PyThreadState* const mine = PyThreadState_Get();
  visitors().insert(PyThreadState_GetID(mine));
  PyThreadState* each = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; each != nullptr; each = PyThreadState_Next(each)) {
    while (!python::is_filled_in(each)) std::this_thread::yield();
    if (each->c_profilefunc == nullptr && visitors().insert(PyThreadState_GetID(each)).second &&
        python::call_at_next_event(each, on_event) < 0)
      PyErr_Clear();
  }
}

// ---- New threads ------------------------------------------------------------------------------

PyCFunction start_thread = nullptr;

/// `_thread.start_new_thread`. The new thread waits for Python's lock until this returns.
PyObject* start_watched_thread(PyObject* self, PyObject* arguments) {
  PyObject* const number = start_thread(self, arguments);
  if (number != nullptr && has_visits()) watch_other_threads();
  return number;
}

void watch_new_threads() {
  if (start_thread != nullptr) return;
  const python::Object start = python::import_attribute("_thread", "start_new_thread");
  if (!PyCFunction_Check(start.get())) return;
  PyMethodDef* const definition = reinterpret_cast<PyCFunctionObject*>(start.get())->m_ml;
  if (definition->ml_flags != METH_VARARGS) return;
  start_thread = definition->ml_meth;
  definition->ml_meth = start_watched_thread;
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
