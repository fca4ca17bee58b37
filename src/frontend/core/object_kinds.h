// What kind of object one of Python is, as far as the interpreter treats some apart.
#pragma once

#include "python/object.h"

namespace janus::frontend {

/// Whether the class is an enumeration.
bool is_enumeration(PyTypeObject* type);

/// Whether the object is used by what it is, not by what it holds.
bool is_identity_object(PyObject* object);

}  // namespace janus::frontend
