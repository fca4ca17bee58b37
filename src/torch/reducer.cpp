#include "torch/reducer.h"

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <mutex>

namespace janus::torch {

namespace {

/// What a class keeps private may be named where a template is instantiated.
template <auto member>
struct Opened {
  friend bool is_hook_set(c10d::Reducer& reducer) { return reducer.*member != nullptr; }
};
bool is_hook_set(c10d::Reducer& reducer);
template struct Opened<&c10d::Reducer::comm_hook_>;

/// To see what classes derived from the reducer may.
struct Open : c10d::Reducer {
  static std::mutex& mutex_of(c10d::Reducer& reducer) { return reducer.*(&Open::mutex_); }
  static bool& expects(c10d::Reducer& reducer) { return reducer.*(&Open::expect_autograd_hooks_); }
  static bool must_finish(c10d::Reducer& reducer) { return reducer.*(&Open::require_finalize_); }
};

}  // namespace

void stop_waiting(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  Open::expects(reducer) = false;
}

void start_waiting(c10d::Reducer& reducer) { reducer.prepare_for_backward({}); }

bool is_reducing(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  return Open::must_finish(reducer);
}

bool is_waiting(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  return Open::expects(reducer);
}

bool has_communication_hook(c10d::Reducer& reducer) { return is_hook_set(reducer); }

}  // namespace janus::torch
