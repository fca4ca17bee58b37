// Arguments of calls: their evaluation at the call, and how they are bound to the parameters of a
// Python function.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The arguments of a call expression in evaluation order; stars are unpacked.
CallArguments evaluate_arguments(Interpreter& interpreter, const syntax::Call& call);

/// The default values of a function's parameters.
struct Defaults {
  std::vector<Value> positional;                     ///< of the last positional parameters
  std::function<Value(const std::string&)> keyword;  ///< of a keyword-only one; null: none
};

/// The parameters of a function of Python.
struct Signature {
  const syntax::Tree& tree;
  const syntax::Arguments& arguments;
  const std::string& function;  ///< its name, for messages
};

/// Binds the arguments to the parameters as Python does: sets the function's variables. Refuses
/// where Python raises TypeError.
void bind_arguments(Interpreter& interpreter, const Signature& signature,
                    const CallArguments& arguments, const Defaults& defaults, Variables& variables);

}  // namespace janus::frontend
