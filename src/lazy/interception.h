// Takes the operators of a thread from it before they run: a fallback for all operators on a key of
// torch's dispatcher, below autograd, which counts while a thread's local state includes it.
//
// Autograd, autocast and functions of torch that are made of operators do what they always do; what
// arrives are the operators that they call in the end, those of `backward()` and of optimizers
// included.
#pragma once

#include "base/options.h"

namespace janus::lazy {

class Session;

inline constexpr Switch kInterceptionSwitch{
    "interception", "operators can be noted before they run; off: torchjanus.lazy() does nothing"};

/// Registers the fallbacks. Called once at start-up.
void register_interception();

/// Switches the interception of this thread's operators on, for a session, or off (null).
void intercept(Session* session);

}  // namespace janus::lazy
