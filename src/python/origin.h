// Whether a name of a library still refers to the library's own object, or the program replaced it.
#pragma once

#include <string_view>

#include "python/object.h"

namespace janus::python {

/// Whether an object that is found under a name of the module `library` is the library's own.
/// Python code must lie in the library's folder; C code is taken for the library's.
bool is_made_by(PyObject* object, std::string_view library);

}  // namespace janus::python
