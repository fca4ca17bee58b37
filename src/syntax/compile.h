// Compiling a single function's `ast` node so that its code is what the whole file's compilation
// gave: the same free variables, the same mangled names, the same positions.
#pragma once

#include <string>
#include <vector>

#include "python/object.h"

namespace janus::syntax {

/// What the surroundings of a function's definition say about its code.
struct CodeContext {
  std::string file;
  std::string class_name;             ///< innermost class around; empty: none
  std::vector<std::string> freevars;  ///< names that enclosing functions bind (mangled)
  int future_flags = 0;               ///< of `from __future__ import ...`
  /// Names that the module imports: the compiler calls their attributes in another way.
  std::vector<std::string> imports;
};

/// The context that a code object was compiled in, but for the class and the imports.
CodeContext context_of(PyObject* code);

/// The syntax tree of a file's text; no warnings are shown (importing the file has shown them).
python::Object parse_file(PyObject* text, const std::string& file);

/// Code objects at the level where the function's code stands when `definition` (a FunctionDef,
/// AsyncFunctionDef, or an Expr with a Lambda) is compiled in that context, in order: those of its
/// decorators and defaults first, its own last. Nothing is run.
std::vector<python::Object> compile_definition(PyObject* definition, const CodeContext& context);

/// Compiles a list of statements as a module's.
python::Object compile_module(PyObject* statements, const CodeContext& context);

/// Whether two code objects do the same at the same places of the same file. Whether they stand in
/// a function or not, and their qualified names, are not looked at.
bool same_code(PyObject* a, PyObject* b);

/// The code objects among a code object's constants, in order.
std::vector<python::Object> nested_codes(PyObject* code);

}  // namespace janus::syntax
