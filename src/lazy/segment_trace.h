// A segment as a trace (trace/trace.h): its calls as events, what a storage holds as one value.
//
// Storages that the program keeps (storage_identities.h) are cells, all others from before are fed,
// each view that is read by itself. What a call reads or writes of a storage that is written, or of
// a cell, is a view of one value that covers it (view_chain.h): an event of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lazy/recorded_segment.h"
#include "lazy/segment_operators.h"

namespace janus::lazy {

/// The cells of a family's graph.
class FamilyCells {
 public:
  struct Cell {
    StorageIdentity identity = 0;
    bool is_written = false;
    Geometry geometry;
    int64_t offset = 0;
    std::string name() const { return "c" + std::to_string(identity); }
  };

  FamilyCells(std::span<const RecordedSegment> segments, const StorageIdentities& identities);

  /// The position of the storage's cell; nothing if it has none.
  std::optional<size_t> of(StorageIdentity identity) const;
  const Cell& operator[](size_t cell) const { return cells_[cell]; }
  size_t size() const { return cells_.size(); }

 private:
  std::vector<Cell> cells_;
  std::unordered_map<StorageIdentity, size_t> by_identity_;
};

struct SegmentTrace {
  trace::Trace trace;
  /// A tensor that is fed.
  struct Feed {
    uint32_t storage = 0;
    Geometry geometry;
    int64_t offset = 0;
  };
  std::vector<Feed> feeds;           ///< by number
  std::vector<c10::Scalar> numbers;  ///< in the order of events' operands
  /// What a storage holds at the end, that is no cell: the fetch of the same position.
  struct Final {
    uint32_t storage = 0;
    Geometry geometry;
    int64_t offset = 0;
  };
  std::vector<Final> finals;
  std::map<size_t, uint32_t> cells;  ///< those that it uses, with their storages
  std::string unknown;               ///< an operator that there is none of; the trace ends there
};

/// Throws NotInGraph.
SegmentTrace trace_of(const RecordedSegment& segment, const FamilyCells& cells, CallForms& forms,
                      SegmentOperators& operators, trace::Names& names);

}  // namespace janus::lazy
