// Immutable objects of Python that are known by what they are equal to.
#pragma once

#include <string>

#include "python/object.h"

namespace janus::frontend {

/// str as std::string; empty if it is none.
std::string text_of(PyObject* object);

/// Whether the object and all its parts can never change (so `equals` says all about it).
bool is_immutable_constant(PyObject* object);

/// Whether two immutable objects can't be told apart but by their identity.
bool same_constant(PyObject* a, PyObject* b);

}  // namespace janus::frontend
