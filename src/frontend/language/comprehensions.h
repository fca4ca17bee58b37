// Comprehensions, and generator expressions that a call consumes at once.
#pragma once

#include <functional>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What gives an element, in the scope of its clauses.
struct ElementMaker {
  const std::vector<syntax::Comprehension>& generators;
  const syntax::Scope* scope;
  std::function<Value()> element;
};

/// The elements as a list. Its clauses are loops of the graph where the number of their rounds
/// varied, if `may_roll`; conditions that only the run decides are branches.
std::shared_ptr<Sequence> list_of_elements(Interpreter& interpreter, const ElementMaker& maker,
                                           bool may_roll);

/// A call whose only positional argument (of next(): the first one) is a generator expression that
/// it consumes: `any(... for ...)`, `sorted(... for ...)`, `", ".join(... for ...)`. Null: it is
/// another call.
Value call_with_elements(Interpreter& interpreter, const Value& callee,
                         const syntax::Call& expression);

/// A generator expression, whose elements are taken one at a time.
std::shared_ptr<Iterator> generate_elements(Interpreter& interpreter,
                                            const std::vector<syntax::Comprehension>& generators,
                                            const syntax::Scope* scope,
                                            std::function<Value()> element);

}  // namespace janus::frontend
