// `try`, `raise` and `assert`: what ends blocks of statements, and what is done at their ends. An
// exception that the program does not handle is left to eager execution.
#pragma once

#include <functional>
#include <optional>

#include "frontend/core/exceptions.h"
#include "frontend/core/interpreter.h"

namespace janus::frontend {

Completion execute_try(Interpreter& interpreter, const syntax::Try& statement);
Completion execute_raise(Interpreter& interpreter, const syntax::Raise& statement);
Completion execute_assert(Interpreter& interpreter, const syntax::Assert& statement);

/// While it lives, what is interpreted stands in the body of a `try` or `with`, which may handle
/// exceptions or not.
class Within {
 public:
  Within(Frames& frames, bool handles) {
    if (handles) awaiting_.emplace(frames, Awaiting::What::exceptions);
  }

 private:
  std::optional<Awaiting> awaiting_;
};

/// Whether the statement does something where its body fails. What torch's own `finally`, and its
/// handlers that raise again, do there puts back what was before, as a run that fails leaves it.
bool sees_errors(const Frames& frames, const syntax::Try& statement);

/// Whether a `try` among these statements, but not in functions of their own, has such a handler.
bool has_handler(const syntax::Body& body,
                 const std::function<bool(const syntax::ExceptHandler&)>& is_such);

/// What follows the body of a `try`, which ended by `completion`: says how the statement ends.
/// `forks`: how many the frame had before it.
Completion end_try(Interpreter& interpreter, const syntax::Try& statement, size_t forks,
                   Completion completion);

/// The exception of the frame at hand goes on to an outer handler.
Completion propagate(const Frames& frames);

}  // namespace janus::frontend
