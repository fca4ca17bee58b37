// What happens when, on which thread, for timelines such as those of Chrome's tracing. While nobody
// asks for it, a place where something happens costs one load.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/steady_time.h"

namespace janus {

class Timeline {
 public:
  struct Event {
    const char* category = "";  ///< a literal
    std::string name, details;
    double start = 0, end = 0;  ///< seconds, as steady_seconds() counts; equal: an instant
    uint64_t thread = 0;        ///< the system's number of it
  };

  static bool is_kept() { return is_kept_.load(std::memory_order_relaxed); }
  /// From now on events are kept, until there are so many; further ones are only counted. A process
  /// that is forked keeps none.
  static void begin(size_t most);
  /// Ends that, and gives what was kept, in the order in which events ended.
  static std::vector<Event> end();
  /// How many were only counted since the last begin().
  static size_t left_out();
  /// Of this thread.
  static void add(const char* category, std::string name, double start, double end,
                  std::string details = {});

 private:
  static std::atomic<bool> is_kept_;
};

/// Notes the time from its construction to its destruction. `name` must live longer.
class TimelineSpan {
 public:
  TimelineSpan(const char* category, std::string_view name) : category_(category), name_(name) {
    if (Timeline::is_kept()) [[unlikely]]
      start_ = steady_seconds();
  }
  ~TimelineSpan() {
    if (start_ >= 0) [[unlikely]]
      end();
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

  const char* details = "";  ///< a literal

 private:
  void end() const;

  const char* category_;
  std::string_view name_;
  double start_ = -1;
};

}  // namespace janus
