// The texts of what was typed and has no file. Up to Python 3.12 the prompt keeps no source: each
// statement is compiled by itself from `<stdin>`. But where lines can be edited, `readline`
// remembers them. IPython keeps its cells, but not where a `%%time` above a cell runs it.
#pragma once

#include <string>
#include <vector>

#include "python/object.h"

namespace janus::syntax {

/// Whether code of that file was typed where no source is kept.
bool is_prompt(const std::string& file);

/// What may have been typed for the statement that the code stands in, latest first: lists of
/// lines, as linecache gives them. Guesses; source.cpp believes what compiles to the very code.
std::vector<python::Object> typed_lines(PyObject* code);

/// Lets linecache give these lines under a name of their own, which is returned.
std::string keep_typed_lines(const std::string& file, const python::Object& lines);

}  // namespace janus::syntax
