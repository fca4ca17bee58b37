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
  /// Names that its module imports (compile.h's CodeContext).
  std::vector<std::string> imports;
};

/// The tree of a Python function (plain function or lambda; methods: their __func__). Cached by
/// code object. Finds the node by compiling candidates and comparing the code, positions included
/// (two lambdas on one line, decorators, notebook cells through linecache). Never raises; leaves
/// the current Python exception as it is.
const Source& source_of(PyObject* function);

/// The same for a code object; `globals` (may be null) is its function's, for sources that only
/// the module's loader knows.
const Source& source_of_code(PyObject* code, PyObject* globals);

/// The `ast` node that the function's tree mirrors (FunctionDef or Lambda), found anew: it takes
/// several times the room of the tree. Null if the text is another by now.
python::Object definition_of(PyObject* function);

/// From now on source_of(code) is source_of(original): for the profiler's instrumented copies,
/// which functions that a profiled run made may carry for the rest of their lives. Keeps both
/// alive.
void note_copy(PyObject* code, PyObject* original);
/// The code that `code` was declared a copy of, else `code` itself. Borrowed.
PyObject* original_code(PyObject* code);

/// The tree of a run of statements: `module` is an ast.Module whose body they are; `class_name`
/// mangles. `frame_variables` are the local (also nonlocal) variables of the function they stand
/// in: those names are local in the tree's scope, as are all names that the statements bind.
std::shared_ptr<Tree> tree_of_statements(PyObject* module, const std::string& file,
                                         const std::string& name, bool at_module_level,
                                         const std::vector<std::string>& frame_variables = {},
                                         const std::string& class_name = {});

}  // namespace janus::syntax
