// What has as many elements as the data say: where a tensor is not zero, and what masks choose.
// The run counts them first, and the count names a dimension that all behind it can rely on. It has
// to be at least 2, as every dimension with a name; one element and none have a graph each.
#pragma once

#include <memory>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// torch.nonzero: the positions of what is not zero, one a row. Refuses inside of functions of the
/// graph.
std::shared_ptr<Tensor> nonzero(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);

}  // namespace janus::frontend
