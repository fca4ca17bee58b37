// How tensors were made before torch.tensor, and the names of their classes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "graph/graph.h"
#include "graph/type.h"

namespace janus::frontend {

/// The class of tensors of a dtype, as "torch.FloatTensor"; null if it has none.
const char* class_name_of(graph::DType dtype);
std::optional<graph::DType> dtype_of_class_name(std::string_view name);

}  // namespace janus::frontend
