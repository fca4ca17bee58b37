// Instrumented copies: the program's functions, with calls of hooks at the nodes that facts are
// kept of. See hooks.h for what the hooks do, instrument.cpp for what becomes of each construct.
#pragma once

#include "python/object.h"
#include "syntax/tree.h"

namespace janus::speculate {

/// A new function object with instrumented code that shares the function's globals, closure cells,
/// defaults and names; null where the function is not instrumented (no source, generator or
/// coroutine). A function that is an instrumented copy already is given back. Never raises.
python::Object instrumented_function(PyObject* function);

/// A function object made of the function's definition with another body (an `ast` node): with the
/// function's globals, closure cells, defaults and names. Nothing of the definition is run.
/// `constants`: see patch_constants. Throws python::ErrorSet and InternalError.
python::Object function_of_definition(PyObject* function, PyObject* definition,
                                      PyObject* constants);

/// A run of statements with hooks: an ast.Module, for each statement the list of nodes in it that
/// it became, and a dict from the placeholders (str constants) in it to the objects that take their
/// place once it is compiled (see patch_constants). Facts are kept in the ProfileStore under `key`.
struct InstrumentedStatements {
  python::Object module;
  python::Object statements;
  python::Object constants;
};
InstrumentedStatements instrument_statements(const syntax::Tree& tree, PyObject* key);

/// The code object with those of its constants, and of code nested in it, that are keys of the dict
/// replaced by the values.
python::Object patch_constants(PyObject* code, PyObject* constants);

}  // namespace janus::speculate
