// The graph of a segment, compiled, and its runs.
#pragma once

#include <memory>
#include <vector>

#include "execute/program/program.h"
#include "lazy/compiling_program.h"
#include "lazy/segment_graph.h"

namespace janus::lazy {

class CompiledSegment {
 public:
  explicit CompiledSegment(SegmentGraph made);

  /// Whether it can run. Throws what has made the compiler fail.
  bool is_ready();

  /// The operands of a run, and its results once it has run.
  struct Run {
    std::vector<execute::Slot> inputs, cells, results, rebound;
    bool has_failed = false;  ///< with nothing changed
  };
  /// Of a segment with the structure that the graph was made of. `numbers` as in its events. The
  /// segment and the memory of its storages must be kept until the run is over.
  Run prepare(const Segment& segment, const std::vector<c10::Scalar>& numbers) const;
  /// Thread-safe.
  void run(Run& run) const;
  /// Gives the storages that the segment makes their contents.
  void install(const Segment& segment, Run run) const;

 private:
  SegmentGraph made_;
  CompilingProgram compiling_;
  std::unique_ptr<execute::Program> program_;
  std::vector<const SegmentGraph::Cell*> cells_;
};

}  // namespace janus::lazy
