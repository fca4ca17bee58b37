// The dispatch keys by which operators are intercepted (src/lazy/), for those who look at the keys
// of tensors and threads.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace janus::torch {

/// Below autograd and whatever else of torch's handles operators before they reach a backend.
/// Included in the local state of threads whose operators are intercepted.
inline constexpr c10::DispatchKey kBelowAutograd = c10::DispatchKey::Fake;
/// On tensors that a lazy operator has made: operators of other threads come by here.
inline constexpr c10::DispatchKey kLazyTensor = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
/// Above everything, for operators of torch that look at a tensor's memory themselves.
inline constexpr c10::DispatchKey kAboveAll = c10::DispatchKey::TESTING_ONLY_GenericMode;

inline constexpr c10::DispatchKeySet kInterceptionKeys = c10::DispatchKeySet(kBelowAutograd) |
                                                         c10::DispatchKeySet(kLazyTensor) |
                                                         c10::DispatchKeySet(kAboveAll);

/// While it lives, this thread's operators run as if nobody intercepted them. None looks for what
/// is pending either: who waits for another thread's work while it runs its own may wait for ever.
class NotIntercepted {
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::DispatchKeySet(kBelowAutograd) |
                                            c10::DispatchKeySet(kAboveAll)};
};

/// Takes the key of lazy tensors away, for functions of torch that take every key for a device's.
/// The tensor's contents must be there: other threads no longer wait for them.
void remove_lazy_key(c10::TensorImpl& tensor);

/// What runs all pending operators of this thread; null before there is lazy execution.
void set_settle_pending(void (*settle)());

/// Whether this thread's operators are intercepted now.
bool is_intercepted();

/// While it lives, operators of this thread run when they are called, and none is pending.
class OrdinaryExecution {
 public:
  OrdinaryExecution() { begin(); }
  ~OrdinaryExecution() { end(); }
  OrdinaryExecution(const OrdinaryExecution&) = delete;
  OrdinaryExecution& operator=(const OrdinaryExecution&) = delete;

 private:
  void begin();
  void end();
  bool has_begun_ = false;
};

}  // namespace janus::torch
