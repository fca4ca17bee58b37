// A program after its first, ordinary run: what the passes of the planner start from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../fake_library.h"
#include "../slot_named.h"
#include "execute/code/lowering.h"
#include "execute/code/symbols.h"
#include "execute/frame/frame.h"
#include "execute/plan/planned_code.h"
#include "execute/run/boundary.h"
#include "execute/run/learning.h"
#include "execute/run/ordinary_run.h"
#include "graph/text.h"
#include "ops/list.h"

namespace janus::execute {

class LearnedProgram {
 public:
  LearnedProgram(fake::Library& library, const std::string& text, const std::vector<Slot>& inputs,
                 const std::vector<Slot>& cells = {})
      : graph(graph::parse(text, ops::table())),
        code(make_code(graph)),
        planned{code.body.instructions, code.tail} {
    frame.symbols = Symbols(graph, code.cells).values(inputs, cells, library);
    for (const graph::Node* node : code.operations)
      frame.operations.push_back(library.bind(*node, frame.symbols.lookup()));
    frame.repeated.resize(code.repeated_count);
    frame.slots.resize(code.slot_count + code.cells.size());
    for (const Constant& constant : code.constants) frame.slots[constant.slot] = constant.value;
    enter(code, frame, inputs, cells);
    learn_operands(code, frame, library);
    ran = OrdinaryRun(code, library, frame, true).run();
  }

  uint32_t slot(std::string_view name) const { return slot_named(graph, name); }

  const graph::Graph graph;
  const Code code;
  Frame frame;
  PlannedCode planned;
  bool ran = false;
};

}  // namespace janus::execute
