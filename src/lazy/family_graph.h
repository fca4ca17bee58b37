// One graph of several segments: their traces merged (trace/trace_graph.h), with the program's
// decisions, feeds and numbers as inputs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/program/program.h"
#include "lazy/compiling_program.h"
#include "lazy/segment_trace.h"
#include "trace/feeding.h"
#include "trace/trace_graph.h"

namespace janus::lazy {

class FamilyGraph {
 public:
  /// Throws NotInGraph.
  FamilyGraph(std::span<const RecordedSegment> segments, const StorageIdentities& identities,
              CallForms& forms, const VaryingScalars& varying, bool sizes_vary);

  /// Whether it is compiled. Throws what has made that fail.
  bool is_ready();
  /// Whether it has the segment's path; then run() may follow. `missing`: else, what it lacks.
  bool follow(const RecordedSegment& segment, std::string& missing);
  /// Runs the segment that was followed last. False, with nothing changed, if the run failed.
  bool run(const Segment& segment);

  /// What reports show.
  struct Form {
    size_t traces = 0, operators = 0, branches = 0, feeds = 0, fetches = 0, symbols = 0;
  };
  const Form& form() const { return form_; }

 private:
  void count(size_t traces);
  bool follow_events();
  execute::Slot input(const trace::GraphInput& input, const Segment& segment) const;
  execute::Slot given(const trace::GraphInput& input, uint32_t number,
                      const Segment& segment) const;
  execute::Slot cell(size_t cell, const Segment& segment) const;
  /// A value that the graph gave, and how many storages get it.
  struct MadeValue {
    at::Tensor tensor;
    int uses = 0;
  };
  using MadeValues = std::map<std::pair<uint32_t, uint32_t>, MadeValue>;  // by event and result
  void give_results(std::span<execute::Slot> results, const Segment& segment) const;
  MadeValues values_of(std::span<execute::Slot> results) const;

  CallForms& forms_;
  trace::Names names_;
  FamilyCells cells_;
  SegmentOperators operators_;
  trace::TraceGraph traces_;
  std::optional<trace::Cursor> cursor_;
  std::optional<trace::Feeding> feeding_;
  std::vector<trace::GraphInput> inputs_;
  std::vector<trace::GraphResult> results_;
  std::optional<CompilingProgram> compiling_;
  std::unique_ptr<execute::Program> program_;
  std::vector<size_t> program_cells_;
  SegmentTrace followed_;
  Form form_;
};

}  // namespace janus::lazy
