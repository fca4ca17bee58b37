// Losses of classes where no kernel computes them, and the check that classes are classes.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// `class_loss`, `count_classes`, `pick` and `position`; null for other operators.
std::unique_ptr<execute::Operation> bind_classes(const graph::Node& node,
                                                 const execute::SymbolLookup& symbols);

}  // namespace janus::torch
