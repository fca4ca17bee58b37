// Matrix products: which library multiplies is decided by measurement, per shape, at first use.
#pragma once

#include <memory>

#include "execute/library.h"

namespace janus::torch {

/// Products of two matrices, also added to a third, and `linear`; null for other operators.
std::unique_ptr<execute::Operation> bind_product(const graph::Node& node);

}  // namespace janus::torch
