// Python's arithmetic on numbers.
#include "execute/numbers.h"

namespace janus::execute {

NumberFunction number_function(const graph::Node&) { return nullptr; }

}  // namespace janus::execute
