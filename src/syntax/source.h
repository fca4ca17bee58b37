// From a Python function to its syntax tree.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "python/object.h"
#include "syntax/tree.h"

namespace janus::syntax {

struct Source {
  std::shared_ptr<const Tree> tree;  ///< null: not available, see `why_not`
  std::string why_not;
  /// The `ast` node that the tree mirrors (FunctionDef, Lambda, or Module for statements) and the
  /// file's text, for the profiler's instrumented copy.
  python::Object ast;
};

/// The tree of a Python function (plain function or lambda; methods: their __func__). Cached by
/// code object. Finds the node by the code object's positions (two lambdas on one line, decorators,
/// notebook cells through linecache). Never raises; leaves no Python exception set.
const Source& source_of(PyObject* function);

/// The tree of a run of statements: `module` is an ast.Module whose body they are; `class_name`
/// mangles.
std::shared_ptr<const Tree> tree_of_statements(PyObject* module, const std::string& file,
                                               const std::string& name, bool at_module_level);

}  // namespace janus::syntax
