// Objects with visible finalizers: a `__del__`, or callbacks of weak references. A graph frees what
// its writes replace after its run, behind all its effects; eager frees it in between.
#pragma once

#include <Python.h>

#include <span>

#include "python/object.h"

namespace janus::speculate {

/// Whether freeing the object, and what only it holds, may run the program's code or clear a weak
/// reference. `captured`: objects that the run itself holds.
bool may_run_finalizer(PyObject* object, std::span<const python::Object> captured = {});

/// Whether the object would be freed with the place that holds it, and that visibly. `references`:
/// those of the place and of the caller.
bool would_run_finalizer(PyObject* object, Py_ssize_t references,
                         std::span<const python::Object> captured = {});

}  // namespace janus::speculate
