// The lines of one definition, extracted from a file without parsing the rest.
//
// A program uses a few functions of library files with thousands of lines. Parsing these files
// whole took most of the time of a first profiled run. The extracted text is a guess: source.cpp
// accepts it only if it compiles to the very same code, and parses the whole file otherwise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "python/object.h"

namespace janus::syntax {

/// The text of the `def` where the code begins; nullopt if there is no `def`. Empty lines keep its
/// line numbers; an `if` encloses an indented definition. `lines`: a list of str. `extension`:
/// number of further lines at the definition's indentation that count as part of it (a string or
/// bracket may continue there).
std::optional<std::string> definition_text(PyObject* lines, PyObject* code, int extension);

/// The innermost class that encloses a definition, by its qualified name; empty if there is none.
std::string enclosing_class(const std::string& qualified_name);

/// The names that import statements at module level bind.
std::vector<std::string> imported_names(PyObject* lines);

}  // namespace janus::syntax
