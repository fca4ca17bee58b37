// The two interfaces through which the executor reaches tensors and operators; torch/ implements
// them, tests use a fake. Owned and refined by the executor.
#pragma once

#include "execute/slot.h"
#include "graph/graph.h"

namespace janus::execute {

class Library {
 public:
  virtual ~Library() = default;
};

}  // namespace janus::execute
