// Elements put into or added to a tensor at places that tensors of indices give.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// `scatter`, `scatter_add` and `index_put`; null for other operators.
std::unique_ptr<execute::Operation> bind_element_writes(const graph::Node& node);

}  // namespace janus::torch
