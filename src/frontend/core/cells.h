// Tensors of before the call as state of the graph.
#pragma once

#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// The name of the tensor's cell, made at first use.
const std::string& cell_of(Interpreter& interpreter, Tensor& tensor);

/// Contents at entry as a `state` node.
graph::Value* read_cell(Interpreter& interpreter, Tensor& tensor, const graph::Type& type);

}  // namespace janus::frontend
