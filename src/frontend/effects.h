// What a run shows (frontend/effects.cpp), on one side of a branch.
#pragma once

#include "frontend/interpreter.h"

namespace janus::frontend {

/// Whether what the call is made of may be made, and dropped, where the call itself is not.
bool may_be_conditional(const speculate::Template& call);

/// The call after the commit, in program order.
void show_effect(Interpreter& interpreter, speculate::Template call);

/// The call, made only if result `flag` of the graph is `outcome`.
speculate::Template conditional_call(speculate::Template call, size_t flag, bool outcome);

/// callable(*arguments) after the commit, in program order.
void call_behind_run(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments);

/// Result `flag` of the graph decides which of the two it is.
speculate::Template chosen(speculate::Template if_false, speculate::Template if_true, size_t flag);

}  // namespace janus::frontend
