// A graph on its way to a program: optimised, its kernels compiled, linked, all in the background.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/background.h"
#include "execute/code/shown_result.h"
#include "execute/program/program.h"
#include "graph/graph.h"

namespace janus::lazy {

class CompilingProgram {
 public:
  /// Begins. `shown` as Program::compile takes it.
  CompilingProgram(graph::Graph graph, std::vector<execute::ShownResult> shown);

  /// The program, once, when it is done; null before. Throws what has made it fail. To be asked
  /// from time to time, as a step of the work begins here when the one before it has ended.
  std::unique_ptr<execute::Program> take_if_done();

 private:
  struct Made {
    graph::Graph graph;
    std::vector<execute::ShownResult> shown;
    std::unique_ptr<execute::Program> program;
  };

  void compile_kernels();
  void start(std::function<void()> step);

  std::shared_ptr<Made> made_;  ///< shared with the step that runs
  std::shared_ptr<BackgroundWork> work_;
  bool are_kernels_begun_ = false;
};

/// Runs it as Program::run does. False if it was left, or failed by a mistake of ours, which is
/// reported: the calls it stands for can then run one by one, as a graph writes behind all else.
bool has_run(execute::Program& program, std::span<const execute::Slot> inputs,
             std::span<const execute::Slot> cells, std::span<execute::Slot> results,
             std::vector<execute::Slot>& rebound);

}  // namespace janus::lazy
