// The lines of one definition, cut out of a file without parsing the rest of it.
//
// Files of libraries have thousands of lines of which a program's run needs a few functions;
// parsing them whole took most of the time of a first profile run. What is found here is a guess
// about text; source.cpp believes it only once it compiles to the very code that is sought, and
// else parses the whole file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "python/object.h"

namespace janus::syntax {

/// The text of the `def` where the code begins, on its own lines (empty ones stand for all before
/// it) and in an `if` where it is indented; nullopt if there is no `def`. `lines`: a list of str.
/// `extension`: how many further lines at the definition's own indentation are taken for a part of
/// it (a string or bracket may go on there).
std::optional<std::string> definition_text(PyObject* lines, PyObject* code, int extension);

/// The innermost class around a definition, by its code's qualified name; empty if there is none.
std::string enclosing_class(const std::string& qualified_name);

/// The names that import statements at module level bind.
std::vector<std::string> imported_names(PyObject* lines);

}  // namespace janus::syntax
