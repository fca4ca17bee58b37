#include "check_program.h"

#include "graph/text.h"

namespace janus::trace {

namespace {

constexpr int kRuns = 6, kFurtherRuns = 2;

/// Why the graph does not cover a trace; empty if it does.
std::string follow(Cursor cursor, const Trace& trace) {
  for (size_t i = 0; i < trace.events.size(); ++i)
    if (!cursor.follow(trace.events[i])) return cat("event ", i, ": ", cursor.mismatch());
  if (!cursor.finish()) return cursor.mismatch();
  for (const Fetch& fetch : trace.fetches)
    if (!cursor.fetch(fetch.event, fetch.result)) return cursor.mismatch();
  return {};
}

/// Looks at some results, so that what the graph computes is seen from outside.
void look_at_some(ProgramRun& run) {
  for (uint32_t i = 0; i < run.trace.events.size(); ++i)
    if (!run.trace.events[i].results.empty() && run.trace.events[i].location % 3 == 0)
      run.trace.fetches.push_back({.event = i});
}

std::string compare_all(const TraceGraph& traces, const GeneratedGraph& generated,
                        const std::vector<ProgramRun>& runs) {
  try {
    graph::verify(generated.graph);
    for (const ProgramRun& run : runs)
      if (std::string difference = compare(traces, generated, run); !difference.empty())
        return difference;
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

void count(const Nodes& nodes, ProgramCheck& check) {
  for (const Node& node : nodes.nodes) {
    check.loops += node.is_loop();
    for (const Input& input : node.inputs) check.joins += input.sources.size() > 1;
  }
}

}  // namespace

ProgramCheck check_program(RandomProgram& program, const Names& names) {
  ProgramCheck check;
  TraceGraph traces(names);
  std::vector<ProgramRun> runs;
  for (int i = 0; i < kRuns; ++i) {
    runs.push_back(program.run());
    look_at_some(runs.back());
    traces.merge(runs.back().trace);
    if (traces.merge(runs.back().trace).any()) check.failure = "a trace is not covered at once";
  }
  for (const ProgramRun& run : runs)
    if (std::string why = follow(traces.cursor(), run.trace); !why.empty()) check.failure = why;
  count(traces.nodes(), check);
  for (int i = 0; i < kFurtherRuns; ++i) {
    ProgramRun run = program.run();
    look_at_some(run);
    if (!follow(traces.cursor(), run.trace).empty()) continue;
    check.covers_more = true;
    runs.push_back(std::move(run));
  }
  const auto generated = to_graph(traces);
  std::string graph;
  if (const Refusal* refusal = std::get_if<Refusal>(&generated)) {
    check.refusal = refusal->reason;
  } else if (check.failure.empty()) {
    const auto& made = std::get<GeneratedGraph>(generated);
    check.failure = compare_all(traces, made, runs);
    graph = graph::print(made.graph);
  }
  if (!check.failure.empty()) check.failure += cat('\n', program.text(), traces.print(), graph);
  return check;
}

}  // namespace janus::trace
