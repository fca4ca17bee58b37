// Whether the program has imported a module so far.
#pragma once

#include <Python.h>

namespace janus::python {

inline bool is_loaded(const char* module) {
  return PyDict_GetItemString(PyImport_GetModuleDict(), module) != nullptr;
}

}  // namespace janus::python
