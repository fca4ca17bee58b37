#include "base/ahead_choice.h"

#include <algorithm>

#include "base/policy.h"

namespace janus {

bool AheadChoice::leaves_work() {
  ++points_;
  if (stage_ != Stage::decided) return points_ >= policy::kLooksOfStretch;
  if (points_ >= rest_) {
    enter(Stage::looking, false);
    last_ = {};
  }
  return false;
}

void AheadChoice::go_on(const Reading& reading) {
  if (last_.now == 0) return;
  last_.now += reading.now - paused_.now;
  last_.in_segments += reading.in_segments - paused_.in_segments;
  last_.noted += reading.noted - paused_.noted;
  last_.in_graphs += reading.in_graphs - paused_.in_graphs;
  last_.ahead += reading.ahead - paused_.ahead;
  last_.news += reading.news - paused_.news;
}

void AheadChoice::keep() { decide(true); }

void AheadChoice::enter(Stage stage, bool ahead) {
  stage_ = stage;
  is_ahead_ = ahead;
  points_ = 0;
  settled_ = unsettled_ = 0;
  overlap_ = 0;
}

void AheadChoice::decide(bool ahead) {
  enter(Stage::decided, ahead);
  rest_ = std::max(policy::kLeastLooksOfChoice, 2 * rest_);
}

void AheadChoice::end_stretch(const Reading& reading) {
  const Reading before = last_;
  last_ = reading;
  points_ = 0;
  const uint64_t noted = reading.noted - before.noted;
  const bool is_settled = before.now != 0 && noted > 0 && reading.news == before.news &&
                          2 * (reading.in_graphs - before.in_graphs) >= noted;
  ++(is_settled ? settled_ : unsettled_);
  if (unsettled_ >= policy::kMostStretches) return decide(false);
  if (!is_settled) return;
  const double seconds = reading.now - before.now;
  const double in_segments = reading.in_segments - before.in_segments;
  switch (stage_) {
    case Stage::looking:
      return add_overlap(std::min(in_segments, seconds - in_segments) / seconds);
    case Stage::warming:
      // Work that is left has graphs of its own.
      if (2 * (reading.ahead - before.ahead) >= policy::kLooksOfStretch) {
        test_ = {};
        return enter(Stage::comparing, !test_.next_is_old());
      }
      if (settled_ >= policy::kMostStretches) decide(false);
      return;
    default:
      return compare(seconds / static_cast<double>(noted));
  }
}

void AheadChoice::add_overlap(double share) {
  overlap_ += share;
  if (settled_ < policy::kStretchesOfLook) return;
  if (overlap_ < policy::kLeastOverlap * settled_) return decide(false);
  enter(Stage::warming, true);
}

void AheadChoice::compare(double seconds_of_call) {
  test_.add(seconds_of_call);
  if (test_.is_over())  // a draw is no reason to run ahead
    return decide(test_.verdict() == AbTest::Verdict::kept && test_.with_new() < test_.with_old());
  is_ahead_ = !test_.next_is_old();
}

}  // namespace janus
