// Tensors that existed before the call as state of the graph.
#pragma once

#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

class GraphWriter;

/// The name of the tensor's cell, made at first use.
const std::string& cell_of(GraphWriter& writer, Tensor& tensor);

/// Contents at entry as a `state` node.
graph::Value* read_cell(GraphWriter& writer, Tensor& tensor, const graph::Type& type);

}  // namespace janus::frontend
