// The one place that holds the differentiation that torch/ provides.
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
