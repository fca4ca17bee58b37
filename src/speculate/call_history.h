// What became of a function's calls, over time: the counters at some of the calls. The first calls
// are all there; of the later ones ever fewer, at about equal distances, so that it stays small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace janus::speculate {

template <class Counts>
class CallHistory {
 public:
  struct Sample {
    double time = 0;  ///< when the call began, in milliseconds, as now() counts
    Counts counts;    ///< before it
  };

  /// Whether a call with so many before it is to be noted.
  bool wants(uint64_t calls_before) const { return calls_before >= next_; }
  void note(uint64_t calls_before, double time, const Counts& counts) {
    samples_.push_back({time, counts});
    if (samples_.size() == kMostSamples) thin_out();
    next_ = calls_before + (samples_.size() < kFirstCalls ? 1 : stride_);
  }
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  static constexpr size_t kFirstCalls = 32, kMostSamples = 128;  // chosen, not measured

  void thin_out() {
    size_t kept = kFirstCalls;
    for (size_t i = kFirstCalls; i < samples_.size(); i += 2) samples_[kept++] = samples_[i];
    samples_.resize(kept);
    stride_ *= 2;
  }

  std::vector<Sample> samples_;
  uint64_t next_ = 0, stride_ = 1;
};

}  // namespace janus::speculate
