// Instrumented copies of functions, with calls of hooks at the nodes that have facts. hooks.h says
// what the hooks do, instrument.cpp what becomes of each construct.
#pragma once

#include "python/object.h"
#include "syntax/tree.h"

namespace janus::speculate {

/// A new function object with instrumented code and the function's globals, closure cells, defaults
/// and names. Null if the function can't be instrumented (no source, generator or coroutine). An
/// instrumented copy is returned as it is. Never raises.
python::Object instrumented_function(PyObject* function);

/// A function object made of a changed definition (an `ast` node), with the function's globals,
/// closure cells, defaults and names. Decorators and defaults of the definition are not evaluated.
/// `constants`: see patch_constants. Throws python::ErrorSet and InternalError.
python::Object function_of_definition(PyObject* function, PyObject* definition,
                                      PyObject* constants);

/// A run of statements with hooks: an ast.Module, the list of nodes for each original statement,
/// and a dict from placeholders (str constants) to the objects that replace them after compilation
/// (see patch_constants). The ProfileStore has the facts under `key`.
struct InstrumentedStatements {
  python::Object module;
  python::Object statements;
  python::Object constants;
};
InstrumentedStatements instrument_statements(const syntax::Tree& tree, PyObject* key);

/// The code object with constants replaced by the values of the dict, also in nested code.
python::Object patch_constants(PyObject* code, PyObject* constants);

}  // namespace janus::speculate
