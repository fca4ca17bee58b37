// Holds the implementation that torch/ provides at start-up.
#include "speculate/differentiable.h"

#include "base/check.h"

namespace janus::speculate {

namespace {
Differentiation* current = nullptr;
}  // namespace

Differentiation& differentiation() {
  TORCHJANUS_CHECK(current != nullptr, "differentiation: not set");
  return *current;
}

void set_differentiation(Differentiation* differentiation) { current = differentiation; }

}  // namespace janus::speculate
