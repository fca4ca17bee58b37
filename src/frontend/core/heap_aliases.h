// Paths to pre-existing objects that the run writes to (heap.h). Which paths lead to the same
// object is an assumption.
#pragma once

namespace janus::frontend {

class Interpreter;

/// Two paths that lead to one object, or to two, must do so at every entry where one of them is
/// written through.
void assume_aliases(Interpreter& interpreter);

}  // namespace janus::frontend
