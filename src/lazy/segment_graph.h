// The graph of a segment: its calls as operators of graphs.
//
// A storage is one value that calls replace by another. What a call reads or writes of it is a view
// of that value (view_chain.h). Storages from before are inputs; those that are written are cells.
// The graph has no autograd: the calls were taken below it, those of `backward()` included.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "execute/code/shown_result.h"
#include "graph/graph.h"
#include "lazy/segment.h"

namespace janus::lazy {

/// Which numbers of a segment's calls are inputs: those that were not the same each time. By their
/// position among all numbers of the segment.
using VaryingNumbers = std::vector<bool>;

struct SegmentGraph {
  graph::Graph graph{"segment"};
  /// An input: a number, or a tensor in a storage that is only read.
  struct Input {
    bool is_number = false;
    size_t number = 0;   ///< position among the segment's numbers
    size_t storage = 0;  ///< number of the storage
    Geometry geometry;
    int64_t offset = 0;
  };
  std::vector<Input> inputs;
  /// A written storage, as the cell of that name.
  struct Cell {
    std::string name;
    size_t storage = 0;
    Geometry geometry;
    int64_t offset = 0;
  };
  std::vector<Cell> cells;
  std::vector<size_t> results;   ///< numbers of the wanted storages, as the graph's results
  std::vector<Geometry> shapes;  ///< of the results
  std::vector<execute::ShownResult> shown;
};

/// Nothing, and `why`, if the segment can't be one graph.
std::optional<SegmentGraph> graph_of(const Segment& segment, const VaryingNumbers& varying,
                                     std::string& why);

}  // namespace janus::lazy
