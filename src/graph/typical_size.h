// Sizes where named dimensions are compared with numbers, to weigh memory and work.
#pragma once

#include "graph/graph.h"

namespace janus::graph {

/// What a named dimension is taken to be.
inline constexpr int64_t kTypicalSize = 64;

inline int64_t typical_size(const Dim& dim) {
  return dim.evaluate([](const std::string&) { return kTypicalSize; }).value_or(0);
}

/// Bytes of a tensor; 0 of anything else.
inline int64_t typical_bytes(const Type& type) {
  if (!type.is_tensor()) return 0;
  return typical_size(element_count(type.shape)) * byte_size(type.dtype);
}

}  // namespace janus::graph
