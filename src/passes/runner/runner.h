// Runs passes one after the other: names and times each, verifies its result, dumps the graph if
// the pass changed it, and leaves out what the debug switches (base/options.h) say.
//
// A pass that the result cannot be executed without is `required`: no switch leaves it out, so that
// TORCHJANUS_STOP_AFTER can bisect a miscompile with programs that still run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/runner/pass.h"

namespace janus::passes {

struct PassTime {
  std::string name;
  double milliseconds = 0;
};

class PassRunner {
 public:
  enum class Need { optional, required };

  /// `times`, if given, receives one entry for each pass that ran.
  explicit PassRunner(std::vector<PassTime>* times = nullptr) : times_(times) {}

  /// The graph after `pass`. Errors of the pass and of the verifier name the pass.
  graph::Graph operator()(std::string_view name, const Pass& pass, graph::Graph graph,
                          Need need = Need::optional);

 private:
  bool left_out(std::string_view name, Need need) const;

  std::vector<PassTime>* times_;
  int passes_run_ = 0;
};

/// Whether graphs are verified after each pass: while the log channel `verify` is on, as in tests.
/// It takes a third of the time of the passes.
bool verifies();

}  // namespace janus::passes
