// How a size that varies follows from others, by the values that traces showed.
//
// It is a guess. A cursor checks it in each iteration, and a trace that it is wrong for corrects
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/dim.h"

namespace janus::trace {

/// The values of a size by trace.
using SizeColumn = std::vector<int64_t>;
inline constexpr int64_t kAbsent = -1;  ///< a trace did not show it

/// An expression over symbols that has these values: a product of up to two of them and a number, a
/// symbol times a number and a number added, or a symbol divided by a power of two. Nothing if
/// there is none.
std::optional<graph::Dim> expression_for(const SizeColumn& sizes,
                                         std::span<const SizeColumn> symbols);

}  // namespace janus::trace
