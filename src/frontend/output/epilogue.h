// What a finished run gives back: the result's template, commits of changed state, effects.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Fills the output's results, cells and template from what the run returned and changed.
void finish(Interpreter& interpreter, const Value& result);

/// Implements make_template() of core/operations.h.
speculate::Template template_of(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
