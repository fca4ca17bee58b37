// Sets of classes that an object may have.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

/// The object as the class that it is.
inline PyTypeObject* as_type(const python::Object& object) {
  return reinterpret_cast<PyTypeObject*>(object.get());
}

bool has_class(const Classes& classes, const PyTypeObject* type);
/// The classes of both, each once.
Classes united(Classes classes, const Classes& more);

}  // namespace janus::frontend
