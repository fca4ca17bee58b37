#include "torch/reducer.h"

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <mutex>

namespace janus::torch {

namespace {

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

bool is_reducing(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  return Open::must_finish(reducer);
}

bool is_waiting(c10d::Reducer& reducer) {
  const std::lock_guard lock(Open::mutex_of(reducer));
  return Open::expects(reducer);
}

}  // namespace janus::torch
