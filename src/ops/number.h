// Arithmetic of Python numbers: what every `scalar_...` operator computes, once for constant
// folding, the reference interpreter and the executor. Integers are those of Python that fit into
// 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "graph/op.h"

namespace janus::ops {

using Number = std::variant<int64_t, double, bool>;

/// Computes one operator; nullopt where Python would raise, give a complex number, or need an
/// integer that does not fit (or is not exact): the run fails there.
using NumberFunction = std::optional<Number> (*)(std::span<const Number>);

/// The function of a `scalar_...` operator; null for any other operator.
NumberFunction number_function(const graph::OpDef& op);

/// bool(x), float(x).
bool truth(const Number& number);
double to_double(const Number& number);

}  // namespace janus::ops
