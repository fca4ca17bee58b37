// Locks of threading. That a run has one of them is a change of the heap, which ends with it: the
// commit of what a lock protects is made while the lock is taken (speculate/taken_locks.h).
#pragma once

#include <Python.h>

namespace janus::frontend {

class Heap;

bool is_lock(PyObject* object);

/// One that the run has taken and not given back so far; null: there is none.
PyObject* lock_in_use(const Heap& heap);

}  // namespace janus::frontend
