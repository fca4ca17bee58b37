// What a run shows, in program order: calls that are made behind the commit, some of them on one
// side of a branch only.
#pragma once

#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"

namespace janus::frontend {

/// The call after the commit, in program order.
void show_effect(Interpreter& interpreter, speculate::Template call);

/// Whether what the call is made of may be made, and dropped, where the call itself is not.
bool may_be_conditional(const speculate::Template& call);

/// The call, made only if result `flag` of the graph is `outcome`.
speculate::Template conditional_call(speculate::Template call, size_t flag, bool outcome);

/// Result `flag` of the graph decides which of the two it is.
speculate::Template chosen(speculate::Template if_false, speculate::Template if_true, size_t flag);

/// The object itself, which is made before the run.
speculate::Template constant_template(python::Object object);

}  // namespace janus::frontend
