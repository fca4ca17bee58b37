// What a finished run gives back: the result's template, commits of changed state, effects.
#pragma once

#include "frontend/interpreter.h"

namespace janus::frontend {

/// Fills the output's results, cells and template from what the run returned and changed.
void finish(Interpreter& interpreter, const Value& result);

/// How to build the Python object that a value stands for, after the run.
speculate::Template make_template(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
