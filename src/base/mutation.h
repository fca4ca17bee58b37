// Mutation testing of state changes: tests plant a wrong change and show that they notice it
// (tools/mutations.py). Most are planted where the graph is made. Without one, a run loads one
// flag.
#pragma once

#include <atomic>
#include <cstdint>

namespace janus {

/// The kinds of state that a run changes.
enum class State : uint8_t {
  none,
  attribute,
  slot,
  item,      ///< of a dict
  set,       ///< members of a set
  list,      ///< elements of a list or deque
  variable,  ///< a global, a variable of a closure, a context variable
  met,       ///< attributes of objects discovered at run time
  grad,
  data,       ///< the attribute data of a tensor from before the call
  contents,   ///< in-place writes to a tensor from before the call
  hook,       ///< of a gradient
  finalizer,  ///< code that runs when the last reference goes
  effect,     ///< output that is shown after the commit
  key_order   ///< the order in which new keys are added
};

enum class Mutation : uint8_t {
  not_written,
  both_sides,  ///< both sides of a branch write what one of them writes
  twice        ///< what is added to a number, tensor or list is added twice
};

/// From now on changes of this kind are made wrongly; State::none ends that.
void plant(State state, Mutation mutation);
/// Wrong changes since then.
int64_t planted_changes();

extern std::atomic<State> planted_state;
bool count_planted(State state, Mutation mutation);

inline bool is_any_planted() {
  return planted_state.load(std::memory_order_relaxed) != State::none;
}

/// Called at each change: whether it must be made wrongly in this way. Counts it if so.
inline bool is_planted(State state, Mutation mutation) {
  return is_any_planted() && count_planted(state, mutation);
}

}  // namespace janus
