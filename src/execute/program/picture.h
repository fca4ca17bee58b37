// What a program became, for reports: the code of its kernels and the plan of its memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execute/plan/plan_picture.h"

namespace janus::execute {

class Program;

/// Nodes are those of the program's graph.
struct ProgramPicture {
  struct Kernel {
    const graph::Node* node = nullptr;
    std::string llvm;
  };
  std::vector<Kernel> kernels;
  PlanPicture plan;  ///< for the sizes of the last planned run; empty if there was none
  int64_t arena_bytes = 0;
  std::vector<TimedNode> seconds;  ///< of the nodes of that plan; empty: no run was timed
};

/// `program`: what Program::compile gave.
ProgramPicture picture_of(const Program& program);

}  // namespace janus::execute
