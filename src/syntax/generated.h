// The text of an `__init__` that @dataclass wrote. `dataclasses` compiles it from a text that it
// does not keep, in the file `<string>`.
#pragma once

#include "python/object.h"

namespace janus::syntax {

/// The lines from which `dataclasses` may have compiled the code, as in linecache: a guess by its
/// instructions, which source.cpp accepts only if it compiles to the very same code. Null if the
/// code is no such `__init__`.
python::Object generated_lines(PyObject* code);

}  // namespace janus::syntax
