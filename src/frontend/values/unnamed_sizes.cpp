#include "frontend/values/unnamed_sizes.h"

#include <algorithm>
#include <string>

namespace janus::frontend {

bool is_unnamed(const graph::Dim& dim) {
  if (dim.is_constant()) return false;
  return std::ranges::any_of(dim.symbols(),
                             [](const std::string& name) { return name.starts_with(kUnnamed); });
}

}  // namespace janus::frontend
