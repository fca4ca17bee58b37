// Takes the operators of a thread from it before they run: a fallback for all operators on a key of
// torch's dispatcher, below autograd, which counts while a thread's local state includes it.
//
// Autograd, autocast and functions of torch that are made of operators do what they always do; what
// arrives are the operators that they call in the end, those of `backward()` and of optimizers
// included.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace janus::lazy {

class Session;

/// Registers the fallbacks. Called once at start-up.
void register_interception();

/// Switches the interception of this thread's operators on, for a session, or off (null).
void intercept(Session* session);

/// The keys of a tensor with pending contents, beside those of its kind: other threads wait for it.
c10::DispatchKeySet keys_of_pending();

/// While it lives, this thread's operators run as if nobody intercepted them.
class NotIntercepted {
 public:
  NotIntercepted();

 private:
  c10::impl::ExcludeDispatchKeyGuard below_, wrapper_;
};

}  // namespace janus::lazy
