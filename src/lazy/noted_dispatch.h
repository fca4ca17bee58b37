// The state of torch's dispatcher in which noted operators run, whoever makes them run.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace janus::lazy {

/// While it lives, operators of this thread run as operators were noted: below autograd. Autocast,
/// modes, functorch and tracing have seen them when they were called. Those that are active now are
/// of whoever looks, and so are gradient and inference mode. Nothing is intercepted.
class NotedDispatch {
 public:
  NotedDispatch();
  ~NotedDispatch();
  NotedDispatch(const NotedDispatch&) = delete;
  NotedDispatch& operator=(const NotedDispatch&) = delete;

 private:
  c10::impl::ForceDispatchKeyGuard keys_;
  bool grad_mode_, forward_mode_, inference_mode_;
};

}  // namespace janus::lazy
