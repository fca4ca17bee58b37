// Compiles the `ast` node of a single function to the same code as the whole file's compilation:
// the same free variables, mangled names and positions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "python/object.h"

namespace janus::syntax {

/// The surroundings of a function's definition that change its code.
struct CodeContext {
  std::string file;
  std::string class_name;             ///< innermost enclosing class; empty: none
  std::vector<std::string> freevars;  ///< names that enclosing functions bind (mangled)
  int future_flags = 0;               ///< of `from __future__ import ...`
  /// Names that the module imports. The compiler calls their attributes differently.
  std::vector<std::string> imports;
};

/// The context in which a code object was compiled, without class and imports.
CodeContext context_of(PyObject* code);

/// The syntax tree of a file's text. Shows no warnings: importing the file has shown them.
python::Object parse_file(PyObject* text, const std::string& file);

/// Compiles `definition` (a FunctionDef, AsyncFunctionDef, or an Expr with a Lambda) in the
/// context. Returns the code objects at the level of its own, in order: those of decorators and
/// defaults first, its own last. Runs nothing.
std::vector<python::Object> compile_definition(PyObject* definition, const CodeContext& context);

/// Compiles a list of statements as a module.
python::Object compile_module(PyObject* statements, const CodeContext& context);

/// Whether two code objects have the same instructions at the same places of the same file.
/// Qualified names, and whether they are nested in a function, are not compared.
bool same_code(PyObject* a, PyObject* b);

/// The code object with other fields (`co_name`, …).
python::Object replaced(PyObject* code,
                        const std::vector<std::pair<const char*, python::Object>>& fields);

/// The code objects among a code object's constants, in order.
std::vector<python::Object> nested_codes(PyObject* code);

}  // namespace janus::syntax
