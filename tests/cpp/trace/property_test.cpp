// Random programs: what merging, following and generating have to keep for each of their runs.
#include <gtest/gtest.h>

#include "random_program.h"
#include "trace/trace_graph.h"

namespace janus::trace {
namespace {

#ifdef TORCHJANUS_SANITIZED
constexpr unsigned kPrograms = 200;
#else
constexpr unsigned kPrograms = 3000;
#endif

/// Why the graph does not cover a trace; empty if it does.
std::string follow(Cursor cursor, const Trace& trace) {
  for (size_t i = 0; i < trace.events.size(); ++i)
    if (!cursor.follow(trace.events[i])) return cat("event ", i, ": ", cursor.mismatch());
  if (!cursor.finish()) return cursor.mismatch();
  for (const Fetch& fetch : trace.fetches)
    if (!cursor.fetch(fetch.event, fetch.result)) return cursor.mismatch();
  return {};
}

TEST(RandomPrograms, are_covered_by_the_graph_of_their_traces) {
  size_t fixed = 0, loops = 0, phis = 0, nodes = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Names names;
    RandomProgram program(seed, names);
    TraceGraph graph(names);
    std::vector<Trace> traces;
    for (int i = 0; i < 6; ++i) {
      traces.push_back(program.run().trace);
      graph.merge(traces.back());
      EXPECT_FALSE(graph.merge(traces.back()).any()) << "seed " << seed;
    }
    for (const Trace& trace : traces)
      ASSERT_EQ(follow(graph.cursor(), trace), "") << "seed " << seed << '\n'
                                                   << program.text() << graph.print();
    for (const Node& node : graph.nodes().nodes) {
      ++nodes;
      loops += node.is_loop();
      fixed += node.fixed_trips > 1;
      for (const Input& input : node.inputs) phis += input.sources.size() > 1;
    }
  }
  RecordProperty("loops", static_cast<int>(loops));
  printf("nodes %zu loops %zu fixed %zu phis %zu\n", nodes, loops, fixed, phis);
  EXPECT_GT(loops, kPrograms / 10);
  EXPECT_GT(phis, kPrograms / 10);
}

}  // namespace
}  // namespace janus::trace
