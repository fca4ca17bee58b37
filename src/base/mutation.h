// Wrong changes of state on demand: tests plant one and show that they see it (tools/mutations.py).
// Most are planted where the graph is made; a run without one loads a flag once.
#pragma once

#include <atomic>
#include <cstdint>

namespace janus {

/// What a run changes.
enum class State : uint8_t {
  none,
  attribute,
  slot,
  item,      ///< of a dict
  set,       ///< members of a set
  list,      ///< elements of a list or deque
  variable,  ///< a global, a variable of a closure, a context variable
  met,       ///< attributes of objects that the run meets
  grad,
  data,       ///< memory that a tensor of before the call is put on: the attribute data
  contents,   ///< what is written in place to a tensor of before the call
  hook,       ///< of a gradient
  finalizer,  ///< what runs when the last reference goes
  effect,     ///< what is shown after the commit
  key_order   ///< the order in which new keys are made
};

enum class Mutation : uint8_t {
  not_written,
  both_sides,  ///< what one side of a branch writes, both do
  twice        ///< what the run adds to a number, a tensor, a list is added again
};

/// From now on changes of this kind are made wrongly; State::none takes it back.
void plant(State state, Mutation mutation);
/// How often that was done since it was planted.
int64_t planted_changes();

extern std::atomic<State> planted_state;
bool count_planted(State state, Mutation mutation);

inline bool is_any_planted() {
  return planted_state.load(std::memory_order_relaxed) != State::none;
}

/// At each change: whether it is to be made wrongly in this way, which is counted.
inline bool is_planted(State state, Mutation mutation) {
  return is_any_planted() && count_planted(state, mutation);
}

}  // namespace janus
