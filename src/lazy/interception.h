// Takes the operators of a thread from it before they run: a fallback for all operators on a key of
// torch's dispatcher, below autograd, which counts while a thread's local state includes it.
//
// Autograd, autocast and functions of torch that are made of operators do what they always do; what
// arrives are the operators that they call in the end, those of `backward()` and of optimizers
// included.
#pragma once

#include "base/options.h"

namespace janus {
class AheadChoice;
}

namespace janus::lazy {

inline constexpr Switch kInterceptionSwitch{
    "interception", "operators can be noted before they run; off: torchjanus.lazy() does nothing"};

/// Whether operators may be noted: not where that is switched off, nor where the program has
/// kernels in Python for operators of torch's own, which graphs would not call, nor, until torch
/// 2.12, while another thread's are noted. Needs the GIL.
bool may_begin();
/// Notes this thread's operators from here on, in its session. `choice` decides whether work runs
/// ahead until end(); null: it does not.
void begin(AheadChoice* choice);
/// Whether that is so, even if something runs now that is not noted.
bool has_begun();
/// Ends begin(). All that is noted has run then, unless it throws what the operators throw.
void end();

}  // namespace janus::lazy
