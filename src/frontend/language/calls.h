// Calls: argument binding exactly as Python's, inlining of Python functions, closures and methods.
#pragma once

#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"

namespace janus::frontend {

/// Inlines the Python function `function`, reached by `source` (null: immortal).
Value inline_function(Interpreter& interpreter, PyObject* function, const Source* source,
                      const CallArguments& arguments);

/// Runs the function whose code it is: binds the arguments, makes the frame.
Value run_code(Interpreter& interpreter, const std::shared_ptr<const Code>& code,
               const CallArguments& arguments);

/// contextlib._GeneratorContextManager(function, arguments, keywords)
Value call_generator_context(Interpreter& interpreter, const CallArguments& arguments);

/// Where the expression calls a generator function of the program: runs it to its end, and does
/// `body` in the frame at hand where it yields. False: it is another expression.
bool for_each_yielded(Interpreter& interpreter, const syntax::Expression& expression,
                      const std::function<void(const Value&)>& body);

/// A def or lambda met during the run.
Value make_closure(Interpreter& interpreter, const std::string& name,
                   const syntax::Arguments& arguments, const syntax::Scope* scope,
                   const syntax::Body* body, const syntax::Expression* expression);

/// The arguments of a call expression, stars unpacked, in evaluation order.
CallArguments evaluate_arguments(Interpreter& interpreter, const syntax::Call& call);

/// Implements call() of core/operations.h.
Value call_value(Interpreter& interpreter, const Value& callee, const CallArguments& arguments);

}  // namespace janus::frontend
