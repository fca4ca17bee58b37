// Narrowing of values that depend on a branch (Optional, Either): where the outcome of the branch's
// test is known, the value is one of its two alternatives.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

class Scopes;

/// What the value is at this point, where that is known; else the value itself.
Value narrowed(Scopes& scopes, const Value& value);

/// Gives up the branch that the value came from if it is an Optional.
void expect_narrowed(const Value& value);

void expect_narrowed(const CallArguments& arguments);

/// A variable that two sides of a branch left with different things can't be read.
void check_merged(const Value& variable);

}  // namespace janus::frontend
