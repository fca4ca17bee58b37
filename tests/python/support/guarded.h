// The border between C++ and Python of the extension modules for tests.
#pragma once

#include "python/object.h"

namespace janus::support {

/// Runs `body` and turns C++ exceptions into Python's.
template <class Body>
PyObject* guarded(Body&& body) {
  try {
    return body().release();
  } catch (const python::ErrorSet&) {
    return nullptr;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

}  // namespace janus::support
