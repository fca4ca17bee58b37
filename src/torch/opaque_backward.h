// Opaque calls of which autograd notes what their gradient needs, and that gradient.
#pragma once

#include <memory>

#include "execute/library/operation.h"
#include "graph/graph.h"

namespace janus::torch {

/// Whether the opaque call keeps what autograd notes of it.
bool records(const graph::Node& node);
std::unique_ptr<execute::Operation> bind_recorded_call(const graph::Node& node,
                                                       const execute::SymbolLookup& symbols);

/// The gradient of an opaque call, by autograd.
std::unique_ptr<execute::Operation> bind_opaque_backward(const graph::Node& node,
                                                         const execute::SymbolLookup& symbols);

}  // namespace janus::torch
