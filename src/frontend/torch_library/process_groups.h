// Process groups of torch.distributed.
#pragma once

#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// By which a run finds the group. Torch has each group under one, whatever the group itself says.
std::string name_of_group(const Interpreter& interpreter, PyObject* group);

/// Whether the group compares what processes call, with shapes: torch's for debugging.
bool compares_calls(const Interpreter& interpreter, PyObject* group);

}  // namespace janus::frontend
