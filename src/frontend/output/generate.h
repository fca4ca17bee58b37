// The generator's entry: tree + facts → graph + assumptions, by abstract interpretation.
#pragma once

#include "frontend/core/operations.h"
#include "speculate/facts.h"
#include "speculate/generated.h"

namespace janus::frontend {

/// See speculate::Generator. Errors of the user's program, unsupported constructs and internal
/// errors all come back as a Reason.
std::variant<speculate::Generated, speculate::Reason> generate(const speculate::Call& call,
                                                               speculate::ProfileStore& profiles);

/// Puts the front end's tables in place and sets speculate's generator; once, at start-up.
void install();

}  // namespace janus::frontend
