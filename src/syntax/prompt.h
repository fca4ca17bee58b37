// The text of code without a file, typed at a prompt. Up to Python 3.12 the prompt keeps no source:
// it compiles each statement by itself from `<stdin>`. Where lines can be edited, `readline`
// remembers them. IPython keeps its cells, but without the line offset of a `%%time` above.
#pragma once

#include <string>
#include <vector>

#include "python/object.h"

namespace janus::syntax {

/// Whether code of that file was typed at a prompt that keeps no source.
bool is_prompt(const std::string& file);

/// Candidates for the typed statement that contains the code, latest first: lists of lines, as in
/// linecache. source.cpp accepts one only if it compiles to the very same code.
std::vector<python::Object> typed_lines(PyObject* code);

/// Registers the lines with linecache under a new file name, which is returned.
std::string keep_typed_lines(const std::string& file, const python::Object& lines);

}  // namespace janus::syntax
