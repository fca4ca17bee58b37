// Looks up ATen overloads by name.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace janus::torch {

/// The overload that a node calls: "mm", "add.Tensor".
std::string overload_name(const graph::Node& node);

/// By "add.Tensor" or "aten::add.Tensor"; InternalError if there is none.
c10::OperatorHandle find_overload(std::string_view name);

/// The overload of the same operator that takes the same arguments and writes into given tensors,
/// if the CPU has a kernel of its own for it (a generic one would allocate and copy).
std::optional<c10::OperatorHandle> find_out_overload(const c10::OperatorHandle& overload);

}  // namespace janus::torch
