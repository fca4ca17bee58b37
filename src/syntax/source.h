// From a Python function to its syntax tree.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/object.h"
#include "syntax/tree.h"

namespace janus::syntax {

struct Source {
  std::shared_ptr<const Tree> tree;  ///< null: not available, see `why_not`
  std::string why_not;
  /// Names that its module imports (see CodeContext).
  std::vector<std::string> imports;
};

/// The tree of a plain function, lambda, or method (its __func__), cached by code object. The node
/// is found by compiling candidates and comparing the code with its positions; that tells apart two
/// lambdas on one line, decorators, and notebook cells in linecache. Never raises; leaves the
/// current Python exception as it is.
const Source& source_of(PyObject* function);

/// The same for a code object. `globals` (may be null): those of its function, for sources that
/// only the module's loader knows.
const Source& source_of_code(PyObject* code, PyObject* globals);

/// The `ast` node that the function's tree mirrors (FunctionDef or Lambda). It is parsed again,
/// since it takes several times the memory of the tree. Null if the text has changed.
python::Object definition_of(PyObject* function);

/// From now on source_of(code) is source_of(original). For instrumented copies: functions that a
/// profiled run made may have such code for the rest of their lives. Keeps both alive.
void note_copy(PyObject* code, PyObject* original);
/// The code that `code` was declared a copy of, else `code` itself. Borrowed.
PyObject* original_code(PyObject* code);

/// The tree of a run of statements, the body of the ast.Module `module`. `class_name` mangles
/// names. `frame_variables`: the local and nonlocal variables of the enclosing function. They are
/// local in the tree's scope, as are all names that the statements bind.
std::shared_ptr<Tree> tree_of_statements(PyObject* module, const std::string& file,
                                         const std::string& name, bool at_module_level,
                                         const std::vector<std::string>& frame_variables = {},
                                         const std::string& class_name = {});

}  // namespace janus::syntax
