#include "bind/co_execution_scope.h"

#include <algorithm>
#include <ranges>
#include <vector>

namespace janus::bind {

namespace {

/// A run of a scope.
struct Run {
  explicit Run(CoExecutionScope* of) : scope(of) {}
  CoExecutionScope* scope;
  CoExecution::Turn turn;
  uint64_t news = 0;  ///< when the turn began
};

/// This thread's, the innermost last.
thread_local std::vector<std::unique_ptr<Run>> runs;

/// The innermost around this thread's innermost run that was tried, and is eager for good.
const CoExecution* given_up_around() {
  for (const auto& run : std::views::reverse(runs) | std::views::drop(1))
    if (run->scope->co_execution().is_given_up()) return &run->scope->co_execution();
  return nullptr;
}

}  // namespace

void CoExecutionScope::enter() { runs.push_back(std::make_unique<Run>(this)); }

bool CoExecutionScope::begin_iteration(bool may_count, uint64_t news) {
  if (runs.empty() || runs.back()->scope != this) return true;  // code that runs without its scope
  Run& run = *runs.back();
  if (run.turn.is_open) {
    const bool tells = may_count && news == run.news;
    const bool goes_on = co_execution_.end_iteration(run.turn);
    const bool is_decided = run.turn.stage == CoExecution::Stage::co_executed;
    if (goes_on && (is_decided ? may_count : tells)) return true;
    if (!co_execution_.end(run.turn, tells)) return false;
  }
  if (!may_count || co_execution_.rests()) return true;
  run.news = news;
  run.turn.around = given_up_around();
  co_execution_.begin(run.turn, /*with_frame=*/true);
  return true;
}

bool CoExecutionScope::exit(bool is_error) {
  const auto is_mine = [this](const auto& run) { return run->scope == this; };
  if (std::ranges::none_of(runs, is_mine)) return true;
  bool is_last = false;
  bool has_ended = true;
  while (!is_last) {  // runs beyond the last one are of code that was left without its end
    const std::unique_ptr<Run> run = std::move(runs.back());
    runs.pop_back();
    is_last = is_mine(run);
    if (!run->turn.is_open) continue;
    CoExecution& co_execution = run->scope->co_execution_;
    co_execution.end_iteration(run->turn);
    has_ended &= co_execution.end(run->turn, is_last && !is_error);
  }
  return has_ended;
}

}  // namespace janus::bind
