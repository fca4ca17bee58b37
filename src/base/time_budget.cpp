#include "base/time_budget.h"

#include <limits>

#include "base/policy.h"
#include "base/thread_time.h"

namespace janus {
namespace {

thread_local TimeBudget* current = nullptr;
thread_local int64_t pieces = 0;
std::optional<double> simulated;  // set by tests only, with one thread

double time() { return simulated ? *simulated * static_cast<double>(pieces) : thread_seconds(); }

}  // namespace

int64_t most_seconds_of_generation = policy::kMostGenerationSeconds;

TimeBudget::TimeBudget(std::optional<double> seconds)
    : seconds_(seconds),
      start_(time()),
      outer_(current),
      until_look_(policy::kPiecesBetweenClockReads) {
  current = this;
}

TimeBudget::~TimeBudget() { current = outer_; }

bool TimeBudget::is_spent() {
  ++pieces;
  return current != nullptr && current->seconds_ && current->spent();
}

bool TimeBudget::spent() {
  if (until_look_ == 0) return true;  // it was spent before
  if (!simulated && --until_look_ > 0) return false;
  const bool is_over = time() - start_ >= *seconds_;
  until_look_ = is_over ? 0 : policy::kPiecesBetweenClockReads;
  return is_over;
}

double TimeBudget::seconds_left() {
  if (current == nullptr || !current->seconds_) return std::numeric_limits<double>::infinity();
  return *current->seconds_ - (time() - current->start_);
}

void TimeBudget::give_up() {
  if (current != nullptr) current->until_look_ = 0;
}

double TimeBudget::seconds() { return current == nullptr ? 0 : current->seconds_.value_or(0); }

int64_t TimeBudget::work_done() { return pieces; }

void simulate_work(std::optional<double> seconds) { simulated = seconds; }
bool is_work_simulated() { return simulated.has_value(); }

}  // namespace janus
