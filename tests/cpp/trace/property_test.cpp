// Random programs: what merging, following and generating have to keep for each of their runs.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph_runner.h"

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

/// Looks at some results, so that what the graph computes is seen from outside.
void look_at_some(ProgramRun& run, unsigned seed) {
  for (uint32_t i = 0; i < run.trace.events.size(); ++i)
    if (!run.trace.events[i].results.empty() && (i * 7 + seed) % 3 == 0)
      run.trace.fetches.push_back({.event = i, .after = i + 1});
}

TEST(RandomPrograms, are_computed_by_the_generated_graph) {
  size_t refused = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Names names;
    RandomProgram program(seed, names);
    TraceGraph graph(names);
    std::vector<ProgramRun> runs;
    for (int i = 0; i < 6; ++i) {
      runs.push_back(program.run());
      look_at_some(runs.back(), seed);
      graph.merge(runs.back().trace);
    }
    auto generated = to_graph(graph);
    if (const Refusal* refusal = std::get_if<Refusal>(&generated)) {
      if (++refused < 40) printf("seed %u: %s\n", seed, refusal->reason.c_str());
      continue;
    }
    const auto& made = std::get<GeneratedGraph>(generated);
    ASSERT_NO_THROW(graph::verify(made.graph)) << "seed " << seed;
    for (const ProgramRun& run : runs) {
      std::string difference;
      try {
        difference = compare(graph, made, run);
      } catch (const std::exception& error) {
        difference = error.what();
      }
      ASSERT_EQ(difference, "") << "seed " << seed << '\n'
                                << program.text() << graph.print() << graph::print(made.graph);
    }
  }
  printf("refused %zu\n", refused);
}

}  // namespace
}  // namespace janus::trace
