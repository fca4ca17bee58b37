// Sets of constants that the compiler makes once: `for name in {"a", "b", "c"}` goes through a
// frozenset among the code's constants, in another order than that of a set that is made there.
#pragma once

#include "python/object.h"
#include "syntax/tree.h"

namespace janus::syntax {

/// The frozenset that the compiler makes of a display which a loop goes through; null if it makes
/// none. `code`: the code that the display is from, or in which that is nested; null: none is
/// known.
python::Object folded_set(const Expression& display, PyObject* code);

/// The frozenset among the constants of the code, and of what is nested in it, with the same
/// elements; null if there is none.
python::Object set_in_code(PyObject* code, PyObject* set);

}  // namespace janus::syntax
