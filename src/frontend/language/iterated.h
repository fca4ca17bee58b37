// Iterables of `for` loops and comprehensions: a value, or a counted range of iterations.
#pragma once

#include <optional>

#include "frontend/control/counted.h"

namespace janus::frontend {

/// An iterable.
struct Iterated {
  Value value;                     ///< null if it is counted
  std::optional<Counted> counted;  ///< range(), rows of a tensor, enumerate() and zip() of such
};

/// What a loop goes through as a value: a set of constants is the frozenset that the code has of
/// it.
Value evaluate_iterable(Interpreter& interpreter, const syntax::Expression& expression);

/// Evaluates what is behind `in`; it is counted only if its length varies from call to call, or is
/// too great to be unrolled (Scopes::most_unrolled). `loop`
/// is the loop that can't be in the graph if that is counted in part only.
Iterated evaluate_iterated(Interpreter& interpreter, const syntax::Expression& expression,
                           const TestKey& loop);

}  // namespace janus::frontend
