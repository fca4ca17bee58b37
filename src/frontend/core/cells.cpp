#include "frontend/core/cells.h"

#include "base/check.h"
#include "frontend/core/graph_writer.h"
#include "ops/list.h"

namespace janus::frontend {

const std::string& cell_of(GraphWriter& writer, Tensor& tensor) {
  if (!tensor.cell.empty()) return tensor.cell;
  TORCHJANUS_CHECK(tensor.source != nullptr, "cell_of: a tensor made in the run has no cell");
  tensor.cell = writer.add_cell(speculate::CellBinding::Kind::tensor, tensor.source);
  return tensor.cell;
}

graph::Value* read_cell(GraphWriter& writer, Tensor& tensor, const graph::Type& type) {
  const std::string& cell = cell_of(writer, tensor);
  graph::Value* value =
      writer.root_builder().append_unchecked(op::state, {}, {{"cell", cell}}, {type})->output();
  return value;
}

}  // namespace janus::frontend
