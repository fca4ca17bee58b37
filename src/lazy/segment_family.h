// Families: segments that differ in the path that the program took, or in sizes.
//
// A structure that seldom comes again never pays for a graph of its own. Segments that end with the
// same operator are one family. When a family has seen several structures, one graph of all of them
// is made (family_graph.h), and serves those that it covers. What it does not cover runs one by one
// and is merged into the next graph.
#pragma once

#include <c10/util/FunctionRef.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ab_test.h"
#include "base/steady_time.h"
#include "lazy/family_graph.h"

namespace janus::lazy {

/// Whether segments that differ in paths or sizes share a graph (`options.trace_graph`). Off unless
/// it is asked for, as it was not measured to gain.
extern bool merges_traces;

struct FamilyCounts {
  uint64_t families = 0;  ///< that have a graph, or had one
  uint64_t graphs = 0;    ///< made, better ones of the same family included
  uint64_t calls = 0;     ///< that ran in them
  uint64_t given_up = 0;
  uint64_t waited = 0;     ///< segments that ran one by one as a graph was being compiled
  FamilyGraph::Form last;  ///< the graph that was made last
  std::map<std::string, uint64_t> misses;  ///< by the operator that was new
  uint64_t missed = 0;                     ///< all of them
  std::vector<std::string> unread;  ///< operators of the last ones, that nobody took for a report

  void add_miss(const std::string& missing);
};

/// What all families of a session share.
struct FamilyContext {
  StorageIdentities identities;
  CallForms forms;
  VaryingScalars varying;
  FamilyCounts counts;
  double begun = steady_seconds(), making = 0;  ///< seconds, of making graphs

  /// Whether making graphs has not taken too much of the time.
  bool has_time() const;
};

class SegmentFamily {
 public:
  explicit SegmentFamily(FamilyContext& context) : context_(&context) {}

  /// Runs the segment. Whether by a graph.
  bool run(const Segment& segment, c10::function_ref<void()> one_by_one);

 private:
  /// `following`: seconds that it took to follow the segment.
  bool run_or_compare(const Segment& segment, double following,
                      c10::function_ref<void()> one_by_one);
  void take_next();
  void note_numbers(const RecordedSegment& segment);
  void keep(const Segment& segment, RecordedSegment recorded);
  bool is_graph_due() const;
  void make_graph();
  std::unique_ptr<FamilyGraph> made(std::string& why);
  void give_up(const std::string& why);
  void miss(const std::string& missing);

  FamilyContext* context_;
  std::map<uint64_t, RecordedSegment> segments_;  ///< by the hash of their structure
  std::unique_ptr<FamilyGraph> graph_, next_;
  bool sizes_vary_ = true, is_given_up_ = false;
  size_t news_ = 0;  ///< segments that the last graph does not have
  int graphs_ = 0, followed_ = 0, missed_ = 0;
  AbTest test_;
};

class SegmentFamilies {
 public:
  /// Runs the segment. Whether by the graph of its family.
  bool run(const Segment& segment, c10::function_ref<void()> one_by_one);
  const FamilyCounts& counts() const { return context_.counts; }
  FamilyCounts& counts() { return context_.counts; }

 private:
  FamilyContext context_;
  std::unordered_map<const OperatorRule*, SegmentFamily> families_;  ///< by the last operator
};

}  // namespace janus::lazy
