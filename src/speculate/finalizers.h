// Objects whose end the program sees: a `__del__`, callbacks of weak references. A graph frees what
// its writes replace when it has run, behind all that it shows; eager frees it in between.
#pragma once

#include <Python.h>

#include <span>

#include "python/object.h"

namespace janus::speculate {

/// Whether freeing the object, and what only it holds, may run the program's code or empty a weak
/// reference. `captured`: what the run itself holds, beside the program.
bool may_run_finalizer(PyObject* object, std::span<const python::Object> captured = {});

/// Whether the object would go with its place, and be seen to: `references` lead to it from there,
/// and from those who ask.
bool would_run_finalizer(PyObject* object, Py_ssize_t references,
               std::span<const python::Object> captured = {});

}  // namespace janus::speculate
