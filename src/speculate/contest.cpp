#include "speculate/contest.h"

#include <algorithm>

#include "base/options.h"
#include "execute/shared_arena.h"
#include "python/object.h"
#include "speculate/entry.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {

namespace {

constexpr int kQuietRuns = 16;
/// How many times as fast as profiled runs graphs have to be for it to be clear; hooks make short
/// runs slower.
constexpr double kFarAhead = 1.5, kFarAheadOfShortRuns = 2, kShortRun = 1;
/// One contest at a time, as those within each other would disturb one another. One that does not
/// come again while others ask so often has had its time.
constexpr int kMostPatience = 200;
Contest* current = nullptr;
int asked = 0;

}  // namespace

bool times_decide = true;

bool Contest::begins(uint64_t news) {
  if (!times_decide || trial_.is_over() || options().strict) return false;
  if (news != news_) {
    news_ = news;
    quiet_ = 0;
    quiet_times_.clear();
    trial_ = {};
    leave();
    return false;
  }
  if (quiet_ < kQuietRuns) {
    if (const double taken = lap(); taken != 0) quiet_times_.push_back(taken);
    if (++quiet_ == kQuietRuns && is_far_ahead()) trial_.keep();
    return false;
  }
  if (!enter()) return false;
  if (const double taken = lap(); taken != 0 && counts_) trial_.add(taken);
  counts_ = trial_.next_is_old() == is_without_;
  if (!counts_) change_ways();
  if (trial_.is_over()) {
    if (is_without_) change_ways();
    leave();
  }
  return is_without_;
}

void Contest::change_ways() {
  is_without_ = !is_without_;
  if (is_without_) execute::SharedArena::give_back_unused_pages();
  if (has_tensor_access()) tensor_access().give_back_free_memory();
  started_ = now();
}

void Contest::profiled() {
  if (!times_decide || trial_.is_over()) return;
  const double taken = lap();
  if (taken != 0) least_profiled_ = least_profiled_ == 0 ? taken : std::min(least_profiled_, taken);
}

double Contest::lap() {
  const double time = now();
  const Place place = here();
  const double taken = started_ != 0 && place == place_ ? time - started_ : 0;
  place_ = place;
  started_ = time;
  return taken;
}

bool Contest::is_far_ahead() const {
  if (least_profiled_ == 0 || quiet_times_.size() < kQuietRuns / 2) return false;
  std::vector<double> times = quiet_times_;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle * (least_profiled_ < kShortRun ? kFarAheadOfShortRuns : kFarAhead) <
         least_profiled_;
}

Contest::Place Contest::here() {
  Place place{PyThread_get_thread_ident(), 0};
  for (auto frame = python::Object::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame())); frame;
       ++place.depth)
    frame = python::Object::steal(reinterpret_cast<PyObject*>(
        PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(frame.get()))));
  return place;
}

bool Contest::enter() {
  if (current != this && current != nullptr && ++asked <= kMostPatience) {
    started_ = 0;
    return false;
  }
  if (current != this && current != nullptr) current->leave();
  current = this;
  asked = 0;
  return true;
}

void Contest::leave() {
  started_ = 0;
  is_without_ = false;
  if (current == this) current = nullptr;
}

}  // namespace janus::speculate
