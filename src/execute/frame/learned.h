// What the first run for given sizes learned of each slot's tensor: its layout, and the slot whose
// memory it aliases.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "execute/code/moving_part.h"
#include "execute/values/layout.h"

namespace janus::execute {

struct Learned {
  enum class Origin : uint8_t { nothing, input, cell, computed };
  Origin origin = Origin::nothing;
  Layout layout;
  uint32_t root = 0;        ///< the slot whose memory it lies in; itself for new memory
  int64_t byte_offset = 0;  ///< from the root's first element to its own, but for `moves`
  std::vector<Move> moves;  ///< what moves it within the root's memory from run to run
  // Valid while the first run lasts:
  const void* storage = nullptr;
  const char* data = nullptr;

  bool is_tensor() const { return origin != Origin::nothing; }
  bool moves_in_root() const { return !moves.empty(); }
};

/// By slot. Most slots of a large program are those of functions and loops, or hold numbers:
/// nothing is learned of them, and as there is one of these for each combination of sizes, they
/// take no room.
class LearnedSlots {
 public:
  /// Nothing, of a slot that was not learned.
  const Learned& operator[](uint32_t slot) const {
    static const Learned nothing;
    const bool known = slot < places_.size() && places_[slot] != 0;
    return known ? known_[places_[slot] - 1] : nothing;
  }

  /// To be changed; stays where it is when others come.
  Learned& of(uint32_t slot) {
    if (slot >= places_.size()) places_.resize(slot + size_t{1});
    uint32_t& place = places_[slot];
    if (place == 0) {
      known_.emplace_back();
      place = static_cast<uint32_t>(known_.size());
    }
    return known_[place - 1];
  }

  /// Nothing is known of slots from this one on.
  uint32_t end_slot() const { return static_cast<uint32_t>(places_.size()); }
  std::deque<Learned>& all() { return known_; }
  void clear() {
    places_.clear();
    known_.clear();
  }

 private:
  std::vector<uint32_t> places_;  ///< among what is known, from 1 on; 0: none
  std::deque<Learned> known_;
};

}  // namespace janus::execute
