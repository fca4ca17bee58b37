#include "lazy/compiling_program.h"

#include <cstdio>
#include <utility>

#include "base/check.h"
#include "base/options.h"
#include "graph/text.h"
#include "kernels/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "speculate/entry.h"

namespace janus::lazy {

CompilingProgram::CompilingProgram(graph::Graph graph, std::vector<execute::ShownResult> shown)
    : made_(std::make_shared<Made>(std::move(graph), std::move(shown))) {
  dump("generated.ir", graph::print(made_->graph));
  start([made = made_] {
    made->graph = passes::optimise(std::move(made->graph), nullptr, kernels::can_compile);
  });
}

std::unique_ptr<execute::Program> CompilingProgram::take_if_done() {
  while (work_ == nullptr || work_->is_done()) {
    work_.reset();
    if (made_->program != nullptr) return std::move(made_->program);
    if (!std::exchange(are_kernels_begun_, true))
      compile_kernels();
    else
      start([made = made_] {
        made->program = execute::Program::compile(std::move(made->graph), *speculate::library(),
                                                  nullptr, made->shown);
      });
  }
  return nullptr;
}

void CompilingProgram::compile_kernels() {
  if (options().is_disabled(kBackgroundSwitch.name))
    kernels::compile_all(made_->graph);
  else
    work_ = kernels::begin_compiling(made_->graph);
}

void CompilingProgram::start(std::function<void()> step) {
  if (options().is_disabled(kBackgroundSwitch.name))
    step();
  else
    work_ = BackgroundWork::start({std::move(step)});
}

bool has_run(execute::Program& program, std::span<const execute::Slot> inputs,
             std::span<const execute::Slot> cells, std::span<execute::Slot> results,
             std::vector<execute::Slot>& rebound) {
  try {
    return !program.run(inputs, cells, results, rebound);
  } catch (const InternalError& error) {
    if (options().strict) throw;
    std::fputs(cat("torchjanus: internal error in lazy execution: ", error.what(),
                   "\n  These operators run one by one from now on. Please report this with the "
                   "program's source; TORCHJANUS_STRICT=1 makes it an exception.\n")
                   .c_str(),
               stderr);
    return false;
  }
}

}  // namespace janus::lazy
