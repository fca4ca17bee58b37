// Generator functions of the program that are consumed where they are called: the consumer's code
// runs at each `yield` of the generator's body. `for` loops, comprehensions and `with` statements
// over such functions need no generator object.
#pragma once

#include <functional>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Where the expression calls a generator function of the program, alone or within enumerate(), or
/// is a variable that such a function iterates over: runs the generator to its end, and does `body`
/// in the frame at hand at each `yield`. Gives what it returns; null: it is another expression.
Value for_each_yielded(Interpreter& interpreter, const syntax::Expression& expression,
                       const std::function<void(const Value&)>& body);

/// contextlib._GeneratorContextManager(function, arguments, keywords): the generator runs up to its
/// `yield`, there what the `with` statement surrounds, then the rest.
Value call_generator_context(Interpreter& interpreter, const CallArguments& arguments);

/// The generators that an ExitStack has entered in the interpretation at hand. One that is not left
/// ends when Python frees it, which the graph does not do.
class ContextsOfRun {
 public:
  ContextsOfRun();
  ~ContextsOfRun();
  ContextsOfRun(const ContextsOfRun&) = delete;
  ContextsOfRun& operator=(const ContextsOfRun&) = delete;

  /// No statement leaves that ContextManager, which was entered.
  static void expect_end(const Value& context);
  static void end(const ContextManager* context);
  /// Refuses where one is not left.
  void check(const Frames& frames) const;

 private:
  ContextsOfRun* outer_;
  std::vector<Value> entered_;
};

}  // namespace janus::frontend
