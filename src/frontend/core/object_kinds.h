// What kind of object one of Python is, as far as the interpreter treats some apart.
#pragma once

#include "python/object.h"

namespace janus::frontend {

/// Whether the class is an enumeration.
bool is_enumeration(PyTypeObject* type);

/// Whether the object is used by what it is, not by what it holds.
bool is_identity_object(PyObject* object);

/// Whether the class is that of functions with a cache (functools.lru_cache).
bool is_cached_function(PyTypeObject* type);

/// Whether the class is functools.partial.
bool is_partial(const PyTypeObject* type);

/// Whether it is a method, written in C, of a class of immutable objects: it only computes.
bool is_method_of_immutable(PyObject* callable);

/// Whether the method reads nothing but the immutable contents of numbers and texts, also where
/// objects of derived classes are given. (A tuple's comparison asks its elements.)
bool is_method_of_contents(PyObject* callable);

}  // namespace janus::frontend
