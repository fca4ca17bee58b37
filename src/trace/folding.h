// Loops in traces: an event at an operator and location that was visited before in the iteration
// starts another trip of a loop.
//
// Whether a single trip is one of a loop is seen in other traces only, so all traces are folded
// together. The head of a loop is the first of its events that comes again. A loop goes on as long
// as events are those that were seen between two heads in some trace. What stands between two
// heads is folded by itself: nested loops.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace janus::trace {

/// An operator at a location.
struct Key {
  OperatorId op = 0;
  Location location = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

/// A part of a folded trace: an event, or a loop with the parts of each trip.
struct Item {
  uint32_t event = 0;  ///< of a loop: its first one
  std::vector<std::vector<Item>> trips;
  bool is_loop() const { return !trips.empty(); }
};

inline Key key_of(const Event& event) { return {event.op, event.location}; }

/// The traces with their loops. Trips of loops whose head is in `unrolled` follow each other
/// instead.
std::vector<std::vector<Item>> fold(std::span<const Trace> traces, const std::set<Key>& unrolled);

}  // namespace janus::trace
