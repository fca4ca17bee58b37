// Who made what a library has under a name: the library itself, or the program that replaced it.
#pragma once

#include <string_view>

#include "python/object.h"

namespace janus::python {

/// Whether what is found under a name of the module `library` is of the library's own making. What
/// is in Python must lie in the library's folder; what is in C is taken for its own.
bool is_made_by(PyObject* object, std::string_view library);

}  // namespace janus::python
