// Calls of functions written in Python: the function's body is interpreted in a frame of its own
// (inlining). Closures that the run makes and functions that exist before the call differ in where
// their defaults and free variables come from.
#pragma once

#include <memory>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Runs the function whose code it is: binds the arguments and makes the frame.
Value run_code(Interpreter& interpreter, const std::shared_ptr<const Code>& code,
               const CallArguments& arguments);

/// Calls the Python function `function`, which was reached by `source` (null: it is immortal).
Value inline_function(Interpreter& interpreter, PyObject* function, const Source* source,
                      const CallArguments& arguments);

/// Runs all of a generator's body in its frame.
Value run_generator_body(Interpreter& interpreter, Frame& frame, const syntax::Body& body);

/// The function that a `def` or `lambda` of the program makes.
Value make_closure(Interpreter& interpreter, const std::string& name,
                   const syntax::Arguments& arguments, const syntax::Scope* scope,
                   const syntax::Body* body, const syntax::Expression* expression);

/// Calls such a function.
Value call_closure(Interpreter& interpreter, const Closure& closure,
                   const CallArguments& arguments);

}  // namespace janus::frontend
