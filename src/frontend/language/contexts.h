// `with`: a context is entered, what it surrounds is run, and the context is left on each side that
// is open then.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

Completion execute_with(Interpreter& interpreter, const syntax::With& with);

/// A context that was entered.
struct Entered {
  Value value;               ///< for the target of `as`
  Value exit;                ///< a callable, as its `__exit__`
  bool handles = false;      ///< `exit` may handle exceptions
  bool sees_errors = false;  ///< `exit` does something where what it surrounds fails
  /// It is left once: sides that are open then are merged before.
  bool is_left_once = false;
  size_t forks = 0;  ///< how many the frame had then
};

/// Enters a context manager: the program's own, or one that the interpreter knows.
Entered enter_context(Interpreter& interpreter, const Value& manager);
/// Leaves it where what it surrounds ended by `completion`: says how the statement ends.
Completion leave_context(Interpreter& interpreter, const syntax::With& with, const Entered& entered,
                         Completion completion);

}  // namespace janus::frontend
