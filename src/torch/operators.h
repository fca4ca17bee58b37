// Binds graph nodes to ATen's operators.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// Implements Library::bind: a direct call where there is one (operator_table.h), else a call
/// through the dispatcher.
std::unique_ptr<execute::Operation> bind_operation(const graph::Node& node,
                                                   const execute::SymbolLookup& symbols);

/// A call through the dispatcher, for any overload.
std::unique_ptr<execute::Operation> bind_boxed(const graph::Node& node,
                                               const execute::SymbolLookup& symbols);

/// Whether the opaque call keeps what autograd notes of it.
bool records(const graph::Node& node);
std::unique_ptr<execute::Operation> bind_recorded_call(const graph::Node& node,
                                                       const execute::SymbolLookup& symbols);

/// The gradient of an opaque call, by autograd.
std::unique_ptr<execute::Operation> bind_opaque_backward(const graph::Node& node,
                                                         const execute::SymbolLookup& symbols);

}  // namespace janus::torch
