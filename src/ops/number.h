// Arithmetic of Python numbers: the `scalar_...` operators, for constant folding, the reference
// interpreter and the executor. Integers are Python ints that fit into 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "graph/op.h"

namespace janus::ops {

using Number = graph::PythonNumber;

/// The type of OpDef::number: computes one operator. nullopt, which fails the run, if Python would
/// raise or return a complex number, or if an integer does not fit or is not exact.
using NumberFunction = std::optional<Number> (*)(std::span<const Number>);

/// Whether it computes with Python's numbers alone, or makes a tensor of one.
bool is_of_numbers(const graph::OpDef& op);

/// bool(x), float(x).
bool truth(const Number& number);
double to_double(const Number& number);

}  // namespace janus::ops
