// Zero gradients of tensors and of containers of tensors, with which differentiation starts.
#pragma once

#include "graph/builder.h"

namespace janus::ops {

/// The gradient of a value of this type on which nothing depends: a tensor of zeros, an empty frame
/// or list. TypeError if such values have no gradient.
graph::Value* zero_gradient(graph::Builder& builder, const graph::Type& type);

}  // namespace janus::ops
