// Segments that came before, by structure, and how each is run: its calls one by one, or its graph.
//
// A structure that comes again gets a graph, compiled in the background by the same passes and
// kernels as converted functions. A/B tests decide for each whether its graph is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lazy/run_ahead.h"
#include "lazy/segment.h"
#include "lazy/segment_family.h"

namespace janus::lazy {

class KnownSegment;

class SegmentCache {
 public:
  SegmentCache();
  ~SegmentCache();

  /// Runs the calls. Whether by a graph. `done`: how many have run, if it throws.
  bool run(const Segment& segment, size_t& done);

  /// Begins to run the segment's graph on the runner's thread. Null if no graph is there that has
  /// been found faster.
  std::unique_ptr<RunAhead> begin(const Segment& segment);
  /// As run(), for what began().
  bool finish(const Segment& segment, RunAhead& ahead, size_t& done);

  struct Counts {
    uint64_t structures = 0, graphs = 0, given_up = 0;
    uint64_t waited = 0;  ///< runs one by one, as the kernels were being compiled
  };
  const Counts& counts() const { return counts_; }
  const FamilyCounts& family_counts() const { return families_.counts(); }
  FamilyCounts& family_counts() { return families_.counts(); }

 private:
  KnownSegment& known(const Segment& segment);
  void forget_rare();

  std::unordered_map<uint64_t, std::vector<std::unique_ptr<KnownSegment>>> known_;
  size_t met_ = 0;  ///< structures since those were forgotten that came once
  Counts counts_;
  SegmentFamilies families_;
};

}  // namespace janus::lazy
