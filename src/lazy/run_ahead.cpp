#include "lazy/run_ahead.h"

#include <utility>

#include "base/steady_time.h"
#include "python/lock.h"
#include "torch/interception_keys.h"
#include "torch/run_scope.h"

namespace janus::lazy {

RunAhead::RunAhead(std::shared_ptr<const CompiledSegment> compiled, CompiledSegment::Run run)
    : compiled_(std::move(compiled)), run_(std::move(run)) {
  running_ = GraphRunner::start([this] {
    const torch::NotIntercepted scope;
    const torch::WithoutPython without;
    c10::WarningUtils::WarningHandlerGuard collecting(&warnings_);
    compiled_->run(run_);
  });
}

RunAhead::~RunAhead() {
  try {
    const python::WithoutLock unlocked(PyGILState_Check() != 0);
    running_->wait();
  } catch (...) {  // whoever finishes it is told
  }
}

bool RunAhead::finish(const Segment& segment, size_t& done) {
  {
    // Other threads of Python go on.
    const python::WithoutLock unlocked(PyGILState_Check() != 0);
    const double start = steady_seconds();
    running_->wait();
    seconds_waited_ = steady_seconds() - start;
  }
  if (run_.has_failed) return false;
  done = segment.events.size();  // even if no memory is left for a result
  compiled_->install(segment, std::move(run_));
  for (const c10::Warning& warning : warnings_.all) c10::warn(warning);
  return true;
}

}  // namespace janus::lazy
