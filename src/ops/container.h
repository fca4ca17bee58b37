// Zeros for tensors and for containers of tensors: what differentiation starts from.
#pragma once

#include "graph/builder.h"

namespace janus::ops {

/// The gradient of a value of this type where nothing depends on it: a tensor of zeros, an empty
/// frame or list. TypeError if such values have no gradient.
graph::Value* zero_gradient(graph::Builder& builder, const graph::Type& type);

}  // namespace janus::ops
