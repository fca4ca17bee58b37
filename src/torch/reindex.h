// `reindex` and `reindex_reduce` where the compiler found nothing better for them.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// Null for other operators.
std::unique_ptr<execute::Operation> bind_reindex(const graph::Node& node,
                                                 const execute::SymbolLookup& symbols);

}  // namespace janus::torch
