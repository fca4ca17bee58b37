#include "trace/folding.h"

namespace janus::trace {
namespace {

/// One pass over all traces with what earlier passes found. Whatever is new asks for another pass.
class Folder {
 public:
  Folder(std::span<const Trace> traces, const std::set<Key>& unrolled) : unrolled_(unrolled) {
    for (const Trace& trace : traces) prepare(trace);
  }

  std::vector<std::vector<Item>> run() {
    for (;;) {
      const size_t heads = heads_.size();
      grew_ = false;
      std::vector<std::vector<Item>> result;
      for (trace_ = 0; trace_ < keys_.size(); ++trace_)
        result.push_back(fold_part(0, static_cast<uint32_t>(keys_[trace_].size())));
      if (heads_.size() == heads && !grew_) return result;
      // An outer loop that is known now has parts that an inner loop took for its own.
      if (heads_.size() != heads) bodies_.clear();
    }
  }

 private:
  using Position = uint32_t;

  void prepare(const Trace& trace) {
    std::vector<Key>& keys = keys_.emplace_back();
    for (const Event& event : trace.events) keys.push_back(key_of(event));
    std::vector<Position>& next = next_.emplace_back(keys.size());
    std::map<Key, Position> seen;
    for (size_t i = keys.size(); i-- > 0;) {
      const auto found = seen.find(keys[i]);
      next[i] = found == seen.end() ? static_cast<Position>(keys.size()) : found->second;
      seen[keys[i]] = static_cast<Position>(i);
    }
  }

  std::vector<Item> fold_part(Position begin, Position end) {
    std::vector<Item> items;
    for (Position i = begin; i < end;) {
      const Key& key = keys_[trace_][i];
      if (next_[trace_][i] < end) heads_.insert(key);
      if (!heads_.contains(key)) {
        items.push_back({.event = i++});
        continue;
      }
      const Position stop = end_of_loop(i, end);
      fold_loop(i, stop, items);
      i = stop;
    }
    return items;
  }

  Position end_of_loop(Position head, Position end) {
    const auto& keys = keys_[trace_];
    std::set<Key>& body = bodies_[keys[head]];
    Position stop = head + 1;
    for (Position at = head; at < end; at = next_[trace_][at]) stop = at + 1;
    for (Position at = head; at < stop; ++at) grew_ |= body.insert(keys[at]).second;
    while (stop < end && body.contains(keys[stop])) ++stop;
    return stop;
  }

  void fold_loop(Position head, Position stop, std::vector<Item>& items) {
    const bool unrolled = unrolled_.contains(keys_[trace_][head]);
    Item loop{.event = head};
    for (Position at = head; at < stop;) {
      const Position next = std::min(next_[trace_][at], stop);
      std::vector<Item> trip = {{.event = at}};
      std::vector<Item> rest = fold_part(at + 1, next);
      trip.insert(trip.end(), std::make_move_iterator(rest.begin()),
                  std::make_move_iterator(rest.end()));
      if (unrolled) {
        items.insert(items.end(), std::make_move_iterator(trip.begin()),
                     std::make_move_iterator(trip.end()));
      } else {
        loop.trips.push_back(std::move(trip));
      }
      at = next;
    }
    if (!unrolled) items.push_back(std::move(loop));
  }

  const std::set<Key>& unrolled_;
  std::vector<std::vector<Key>> keys_;       // by trace and event
  std::vector<std::vector<Position>> next_;  // the next event of the same key
  std::set<Key> heads_;
  std::map<Key, std::set<Key>> bodies_;  // by head: what was seen between two heads
  size_t trace_ = 0;
  bool grew_ = false;
};

}  // namespace

std::vector<std::vector<Item>> fold(std::span<const Trace> traces, const std::set<Key>& unrolled) {
  return Folder(traces, unrolled).run();
}

}  // namespace janus::trace
