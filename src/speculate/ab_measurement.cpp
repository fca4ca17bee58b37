#include "speculate/ab_measurement.h"

#include <algorithm>
#include <utility>

#include "base/options.h"
#include "base/policy.h"
#include "execute/memory/shared_arena.h"
#include "python/object.h"
#include "speculate/entry.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {

namespace {

AbMeasurement* current = nullptr;
int asked = 0;

double time_now() { return simulated_time ? simulated_time->now : now(); }

/// Containers may be cyclic or very large: beyond the limit the answer is yes.
bool may_leave_gradients(PyObject* result, int& left_to_look_at) {
  if (result == nullptr || !has_tensor_access() || left_to_look_at-- == 0) return true;
  if (tensor_access().is_tensor(result)) {
    const auto fact = tensor_access().describe(result, nullptr);
    return !fact || fact->requires_grad;
  }
  if (result == Py_None || PyLong_Check(result) != 0 || PyFloat_Check(result) != 0 ||
      PyUnicode_Check(result) != 0)
    return false;
  if (PyDict_CheckExact(result) != 0) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t i = 0; PyDict_Next(result, &i, &key, &value) != 0;)
      if (may_leave_gradients(value, left_to_look_at)) return true;
    return false;
  }
  if (PyTuple_Check(result) == 0 && PyList_CheckExact(result) == 0) return true;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i)
    if (may_leave_gradients(PySequence_Fast_GET_ITEM(result, i), left_to_look_at)) return true;
  return false;
}

}  // namespace

bool times_decide = true;
std::optional<SimulatedTime> simulated_time;

void AbMeasurement::restart() {
  quiet_ = 0;
  of_other_kind_ = 0;
  quiet_times_.clear();
  test_ = {};
  leave();
}

void AbMeasurement::leave_out() {
  skipped();
  is_interrupted_ = true;
}

bool AbMeasurement::begins(uint64_t news, bool with_gradients) {
  if (!times_decide || test_.is_over() || options().strict) {
    started_ = 0;  // nobody waits for the end of this run
    return false;
  }
  if (news != news_ || of_other_kind_ > policy::kMostPatience) {
    news_ = news;
    restart();
    return false;
  }
  if (quiet_ < policy::kQuietRuns) {
    with_gradients_ = with_gradients;
    if (const double taken = lap(); taken != 0) quiet_times_.push_back(taken);
    if (++quiet_ == policy::kQuietRuns && is_far_ahead()) test_.keep();
    return false;
  }
  if (with_gradients != with_gradients_) {
    ++of_other_kind_;
    started_ = 0;
    is_interrupted_ = true;
    return false;
  }
  if (!enter()) return false;
  if (const double taken = lap(); taken != 0) count(taken);
  const bool next_is_old = test_.next_is_old() && may_try(started_);
  changes_ = next_is_old != is_without_;
  const bool is_wanted = next_is_old == test_.next_is_old();
  counts_ = !changes_ && is_wanted && !std::exchange(is_interrupted_, false);
  if (changes_) change_variant();
  if (test_.is_over()) leave();
  return is_without_;
}

/// Counts the time of a run. Its excess over a usual run with graphs is a cost of the measurement,
/// within limits: the program may have done other things before the next run.
void AbMeasurement::count(double taken) {
  of_other_kind_ = 0;
  if (test_.has_both() && is_without_) spent_ += std::max(0.0, test_.with_old() - test_.with_new());
  if (test_.has_both() && changes_)
    spent_ += std::clamp(taken - test_.with_new(), 0.0, test_.with_new());
  if (counts_) test_.add(taken);
}

/// Whether the cost allows one more run without graphs, and the run after it that allocates its
/// memory again.
bool AbMeasurement::may_try(double time) {
  if (tried_since_ == 0) tried_since_ = time;
  const double without = std::max(test_.with_old(), least_profiled_);
  const double with =
      quiet_times_.empty() ? test_.with_new() : *std::ranges::min_element(quiet_times_);
  const double loss = std::max(0.0, without - with);
  return spent_ + loss <=
         policy::kFreeMeasurement + policy::kShareOfMeasurement * (time - tried_since_);
}

void AbMeasurement::change_variant() {
  is_without_ = !is_without_;
  if (is_without_) execute::SharedArena::give_back_unused_pages();
  if (has_tensor_access()) tensor_access().give_back_free_memory();
  started_ = time_now();
}

void AbMeasurement::profiled() {
  if (!times_decide || test_.is_over()) return;
  const double taken = lap();
  if (taken != 0) least_profiled_ = least_profiled_ == 0 ? taken : std::min(least_profiled_, taken);
}

void AbMeasurement::ended(bool is_complete) {
  if (here() != place_) return;
  if (simulated_time)
    simulated_time->now += is_without_ ? simulated_time->without : simulated_time->with_graphs;
  if (is_complete) ended_ = time_now();
  is_end_known_ = true;
}

double AbMeasurement::lap() {
  const double time = time_now();
  const Place place = here();
  const bool is_complete = ended_ != 0;
  double taken = started_ != 0 && place == place_ ? (is_complete ? ended_ : time) - started_ : 0;
  place_ = place;
  started_ = time;
  ended_ = 0;
  is_end_known_ = false;
  if (taken == 0) return 0;
  const bool is_first = quiet_times_.empty() && least_profiled_ == 0 && test_.is_empty();
  if (is_first) is_complete_ = is_complete;
  if (is_complete == is_complete_) return taken;
  ++of_other_kind_;
  if (of_other_kind_ > policy::kMostPatience) least_profiled_ = 0;
  return 0;
}

/// The median of the runs before the measurement, of which there must be some.
double AbMeasurement::quiet_time() const {
  std::vector<double> times = quiet_times_;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

bool AbMeasurement::has_quiet_time() const {
  return least_profiled_ != 0 && quiet_times_.size() >= policy::kQuietRuns / 2;
}

bool AbMeasurement::is_far_ahead() const {
  if (!has_quiet_time()) return false;
  const double factor =
      least_profiled_ < policy::kShortRun ? policy::kFarAheadOfShortRuns : policy::kFarAhead;
  return quiet_time() * factor < least_profiled_;
}

/// The first runs that were timed may have been slow both ways: of a run that is timed by itself,
/// only the ratio is taken from them.
std::optional<double> AbMeasurement::gain_of_run(double milliseconds) const {
  if (!test_.has_both()) return std::nullopt;
  const double difference = test_.with_old() - test_.with_new();
  const bool is_timed_by_itself = is_complete_ && test_.with_new() > 0;
  return is_timed_by_itself ? milliseconds * difference / test_.with_new() : difference;
}

std::optional<AbMeasurement::Speed> AbMeasurement::speed() const {
  if (test_.has_enough()) return Speed{test_.with_new(), test_.with_old(), true};
  if (!has_quiet_time()) return std::nullopt;
  return Speed{quiet_time(), least_profiled_, false};
}

AbMeasurement::Place AbMeasurement::here() {
  Place place{PyThread_get_thread_ident(), 0};
  for (auto frame = python::Object::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame())); frame;
       ++place.depth)
    frame = python::Object::steal(reinterpret_cast<PyObject*>(
        PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(frame.get()))));
  return place;
}

bool AbMeasurement::enter() {
  if (current != this && current != nullptr && ++asked <= policy::kMostPatience) {
    started_ = ended_ = 0;
    return false;
  }
  if (current != this && current != nullptr) current->leave();
  current = this;
  asked = 0;
  return true;
}

void AbMeasurement::leave() {
  started_ = ended_ = 0;
  is_without_ = false;
  if (current == this) current = nullptr;
}

bool may_leave_gradients(PyObject* result) {
  int left_to_look_at = policy::kMostResultParts;
  return may_leave_gradients(result, left_to_look_at);
}

}  // namespace janus::speculate
