#include "frontend/core/cells.h"

#include "base/check.h"
#include "frontend/core/interpreter.h"
#include "ops/list.h"

namespace janus::frontend {

const std::string& cell_of(Interpreter& interpreter, Tensor& tensor) {
  if (!tensor.cell.empty()) return tensor.cell;
  TORCHJANUS_CHECK(tensor.source != nullptr, "cell_of: a tensor made in the run has no cell");
  tensor.cell = interpreter.add_cell(speculate::CellBinding::Kind::tensor, tensor.source);
  return tensor.cell;
}

graph::Value* read_cell(Interpreter& interpreter, Tensor& tensor, const graph::Type& type) {
  const std::string& cell = cell_of(interpreter, tensor);
  graph::Value* value = interpreter.root_builder()
                            .append_unchecked(op::state, {}, {{"cell", cell}}, {type})
                            ->output();
  return value;
}

}  // namespace janus::frontend
