// See operation.h.
#include "execute/library/operation.h"

#include "base/check.h"

namespace janus::execute {

void Operation::run_into(const Operands&) {
  TORCHJANUS_CHECK(false, "operation: it can't run into given tensors");
}

void Operation::look(const Operands&) {
  TORCHJANUS_CHECK(false, "operation: it can't tell whether it fails");
}

}  // namespace janus::execute
