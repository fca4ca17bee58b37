// Comprehensions, and generator expressions that a call consumes at once.
#pragma once

#include <functional>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The clauses of a comprehension, and what evaluates an element in their scope.
struct ElementMaker {
  const std::vector<syntax::Comprehension>& generators;
  const syntax::Scope* scope;
  std::function<Value()> element;
};

/// The elements as a list. If `may_roll`, clauses whose number of iterations varied are loops of
/// the graph; conditions that only the run decides are branches.
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
