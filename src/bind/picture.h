// What reports in HTML show beyond a snapshot: places of operators, kernels, memory, calls over
// time.
#pragma once

#include "python/object.h"
#include "speculate/dispatch.h"

namespace janus::bind {

/// As snapshot_of. It also has "history", and each graph in the cache "picture":
///   operators  by line of the optimised text: that line, file, line, bytes that the operator
///              reads and writes, and those of the operators in its blocks, each by itself
///   places     by line of the generated text: that line, file, line
///   kernels    line of the optimised text, LLVM text
///   order      lines of the optimised text, as the plan runs them; None: none
///   memory     line of the optimised text, number of the result, offset, bytes, and the first and
///              last position in `order` between which it is needed
///   arena_bytes
///   seconds    file, line, seconds of a run that are spent on it, the mean of those
///              that were timed; what several operators take together is divided evenly among them
/// A new dict, or null with an exception set.
PyObject* details_of(const speculate::Dispatcher& dispatcher);

}  // namespace janus::bind
