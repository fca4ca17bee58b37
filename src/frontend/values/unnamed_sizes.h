// Sizes that no input of the graph gives: of tensors that only stand for a list.
#pragma once

#include <string_view>

#include "graph/dim.h"

namespace janus::frontend {

/// What names of such sizes begin with.
inline constexpr std::string_view kUnnamed = "unnamed_";

/// Whether the dimension is that of such a tensor.
bool is_unnamed(const graph::Dim& dim);

}  // namespace janus::frontend
