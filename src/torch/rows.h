// Rows of tensors at an index that is a number of the run, and tensors put one after the other.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// `row`, `row_backward`, `add_to_row`, and `cat` along the first dimension; null for other
/// operators.
std::unique_ptr<execute::Operation> bind_row(const graph::Node& node,
                                             const execute::SymbolLookup& symbols);

}  // namespace janus::torch
