// A graph of a segment that runs on the runner's thread, while Python goes on.
#pragma once

#include <c10/util/Exception.h>

#include <memory>
#include <vector>

#include "base/graph_runner.h"
#include "lazy/compiled_segment.h"

namespace janus::lazy {

class RunAhead {
 public:
  /// Begins. The memory of the segment's storages must be kept until it is over.
  RunAhead(std::shared_ptr<const CompiledSegment> compiled, CompiledSegment::Run run);
  ~RunAhead();
  RunAhead(const RunAhead&) = delete;
  RunAhead& operator=(const RunAhead&) = delete;

  bool is_over() const { return running_->is_over(); }
  /// That it took, once it is over.
  double seconds() const { return running_->seconds(); }
  /// That finish() has waited.
  double seconds_waited() const { return seconds_waited_; }
  /// Until it is over, and the contents of the segment's storages are there. Whether the graph
  /// ran; if not, nothing has changed. Throws what the run has thrown. `done` is then the number of
  /// calls that have run.
  bool finish(const Segment& segment, size_t& done);

 private:
  /// Warnings of the run, which are told when it is finished.
  struct Warnings final : c10::WarningHandler {
    void process(const c10::Warning& warning) override { all.push_back(warning); }
    std::vector<c10::Warning> all;
  };

  std::shared_ptr<const CompiledSegment> compiled_;
  CompiledSegment::Run run_;
  Warnings warnings_;
  double seconds_waited_ = 0;
  std::shared_ptr<GraphRunner::Run> running_;
};

}  // namespace janus::lazy
