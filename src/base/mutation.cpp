#include "base/mutation.h"

namespace janus {
namespace {

std::atomic<Mutation> planted_mutation = Mutation::not_written;
std::atomic<int64_t> changes = 0;

}  // namespace

std::atomic<State> planted_state = State::none;

void plant(State state, Mutation mutation) {
  planted_mutation.store(mutation);
  changes.store(0);
  planted_state.store(state);
}

int64_t planted_changes() { return changes.load(); }

bool count_planted(State state, Mutation mutation) {
  if (planted_state.load() != state || planted_mutation.load() != mutation) return false;
  changes.fetch_add(1);
  return true;
}

}  // namespace janus
