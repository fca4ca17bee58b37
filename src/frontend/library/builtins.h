// What Python's builtin functions do with their arguments.
#pragma once

#include <span>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

[[noreturn]] void refuse_arguments(const Frames& frames, const char* function);

/// Refuses other numbers of arguments, and keywords.
void expect(const Frames& frames, const CallArguments& arguments, size_t least, size_t most,
            const char* function);

/// What the method gives, where the first argument is an object whose class has it in Python.
Value by_own_method(Interpreter& interpreter, const CallArguments& arguments, const char* name);

}  // namespace janus::frontend
