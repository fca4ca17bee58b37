#include "bind/co_execution.h"

#include <exception>

#include "base/policy.h"
#include "base/steady_time.h"
#include "lazy/interception.h"
#include "lazy/session.h"
#include "speculate/ab_measurement.h"
#include "speculate/tensor_access.h"
#include "torch/interception_keys.h"

namespace janus::bind {

namespace {

/// False with an exception set if memory runs out at the end of a call.
bool ends() {
  try {
    lazy::end();
    return true;
  } catch (const std::exception& error) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, error.what());
    return false;
  }
}

/// Whether operators of this thread may be noted: nobody else intercepts them.
bool may_intercept() {
  return !torch::is_intercepted() && !options().is_disabled(kLazySwitch.name) &&
         !options().is_disabled(lazy::kInterceptionSwitch.name) &&
         !speculate::tensor_access().environment().mode_active;
}

}  // namespace

PyObject* CoExecution::call(PyObject* callee, PyObject* const* arguments, size_t flags,
                            PyObject* keyword_names) {
  if (stage_ == Stage::eager || !may_intercept())
    return PyObject_Vectorcall(callee, arguments, flags, keyword_names);
  const bool is_lazy = is_next_lazy();
  const double start = steady_seconds();
  if (!is_lazy) {
    PyObject* const result = PyObject_Vectorcall(callee, arguments, flags, keyword_names);
    ended(steady_seconds() - start, 0, 0);
    return result;
  }
  lazy::begin();
  const lazy::Session& session = lazy::Session::of_this_thread();
  const lazy::Session::Progress before = session.progress();
  PyObject* const result = PyObject_Vectorcall(callee, arguments, flags, keyword_names);
  if (!ends()) {
    Py_XDECREF(result);
    return nullptr;
  }
  const lazy::Session::Progress after = session.progress();
  ended(steady_seconds() - start, after.noted - before.noted, after.in_graphs - before.in_graphs);
  return result;
}

std::string_view CoExecution::state() const {
  switch (stage_) {
    case Stage::co_executed:
      return "co-executed";
    case Stage::eager:
      return "eager";
    default:
      return "undecided";
  }
}

bool CoExecution::is_next_lazy() const {
  return stage_ == Stage::warming || stage_ == Stage::co_executed ||
         (stage_ == Stage::comparing && !test_.next_is_old());
}

void CoExecution::give_up(std::string_view why) {
  stage_ = Stage::eager;
  why_not_ = why;
}

void CoExecution::ended(double seconds, uint64_t noted, uint64_t in_graphs) {
  ++calls_;
  switch (stage_) {
    case Stage::looking:
      seconds_ += seconds;
      if (calls_ < policy::kProfiledRuns) return;
      if (speculate::times_decide && seconds_ < calls_ * policy::kShortestCoExecutedCall)
        return give_up("its calls are too short");
      stage_ = Stage::warming;
      calls_ = 0;
      return;
    case Stage::warming:
      // The first calls run at once, to learn the sizes of results.
      if (calls_ > policy::kProfiledRuns && noted < policy::kFewestNotedCalls)
        return give_up("it calls few operators");
      if (noted >= policy::kFewestNotedCalls && 2 * in_graphs >= noted) {
        stage_ = speculate::times_decide ? Stage::comparing : Stage::co_executed;
      } else if (calls_ >= policy::kMostWarmingCalls) {
        give_up("its operators differ from call to call");
      }
      return;
    case Stage::comparing:
      test_.add(seconds);
      if (test_.verdict() == AbTest::Verdict::kept) stage_ = Stage::co_executed;
      if (test_.verdict() == AbTest::Verdict::given_up) give_up("eager execution is faster");
      return;
    default:
      return;
  }
}

}  // namespace janus::bind
