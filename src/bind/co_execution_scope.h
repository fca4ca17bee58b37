// A loop, or the body of a function, in rewritten code (torchjanus/regions.py) whose iterations may
// be co-executed. The code with a scope C and the regions R of one iteration is
//
//   with C:
//     for …:
//       match R.enter(): …       # tells C that an iteration begins
//
// An iteration lasts until the next one begins, or the scope ends. So work may stay pending between
// iterations, but not beyond the loop, however that is left. Iterations count once their regions
// stay in Python, or are cut, for good. A scope is entered and left in the same frame, as its code
// has no `yield` and no `await`. Guarded by the GIL.
#pragma once

#include <cstdint>

#include "bind/co_execution.h"

namespace janus::bind {

class CoExecutionScope {
 public:
  explicit CoExecutionScope(CoExecution::Kind kind) : co_execution_(kind, /*on_account=*/true) {}

  void enter();
  /// The next iteration begins in this thread's run of the scope. `may_count`: nothing in it will
  /// run otherwise later on. `news`: changes with any new thing within it. False with an exception
  /// set if memory runs out.
  bool begin_iteration(bool may_count, uint64_t news);
  /// The same. `is_error`: an exception leaves the scope.
  bool exit(bool is_error);
  const CoExecution& co_execution() const { return co_execution_; }

 private:
  CoExecution co_execution_;
};

}  // namespace janus::bind
