// See runner.h.
#include "passes/runner/runner.h"

#include <chrono>
#include <string>

#include "base/check.h"
#include "base/options.h"
#include "base/time_budget.h"
#include "graph/op.h"
#include "graph/text.h"

namespace janus::passes {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

size_t count_nodes(const graph::Graph& graph) {
  size_t count = 0;
  graph::for_each_node(graph.body(), [&](const graph::Node&) { ++count; });
  return count;
}

/// Runs `action`; its errors say during which pass they came.
template <class Action>
auto named(std::string_view name, Action&& action) {
  try {
    return action();
  } catch (const InternalError& error) {
    throw InternalError(cat("pass ", name, ": ", error.what()));
  } catch (const graph::TypeError& error) {
    throw graph::TypeError(cat("pass ", name, ": ", error.what()));
  }
}

}  // namespace

bool verifies() { return log_enabled("verify"); }

bool PassRunner::left_out(std::string_view name, Need need) const {
  if (need == Need::required) return false;
  const Options& switches = options();
  return switches.is_disabled(name) ||
         (switches.stop_after.has_value() && passes_run_ >= *switches.stop_after);
}

graph::Graph PassRunner::operator()(std::string_view name, const Pass& pass, graph::Graph graph,
                                    Need need) {
  if (left_out(name, need)) return graph;
  spend_time();
  ++passes_run_;
  const bool dumps = !options().dump_folder.empty();
  const std::string before = dumps ? graph::print(graph) : std::string();

  const size_t nodes_before = log_enabled("pass") ? count_nodes(graph) : 0;

  const Clock::time_point start = Clock::now();
  graph::Graph result = named(name, [&] { return pass(std::move(graph)); });
  const double time = milliseconds_since(start);

  if (times_ != nullptr) times_->push_back({std::string(name), time});
  if (log_enabled("pass"))
    log("pass",
        cat(name, ": ", nodes_before, " -> ", count_nodes(result), " nodes, ", time, " ms"));
  if (dumps) {
    if (const std::string after = graph::print(result); after != before)
      dump(cat(name, ".ir"), after);
  }
  if (verifies()) named(name, [&] { graph::verify(result); });
  return result;
}

}  // namespace janus::passes
