// Truths of tests and flags of the graph.
#pragma once

#include "frontend/values/truth.h"
#include "frontend/values/value.h"

namespace janus::frontend {

class Guards;
class Interpreter;
class ValueMaker;

/// The outcome as a bool.
Value flag_value(ValueMaker& maker, const Truth& truth);

Truth negated(Guards& guards, Truth truth);

/// Whether one of two bools is true, or both are; whether both are.
Value either_flag(Interpreter& interpreter, const Value& a, const Value& b);

Value both_flags(Interpreter& interpreter, const Value& a, const Value& b);

/// Which way the test goes: computed now if it is known, else guarded and followed. `fact`: where
/// its outcomes were counted.
bool decide(Guards& guards, const Truth& truth, int fact);

}  // namespace janus::frontend
