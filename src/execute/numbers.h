// Python-number operators (ops/scalar.cpp), executed natively with Python's semantics.
#pragma once

#include "execute/library.h"

namespace janus::execute {

/// Computes one operator from the slots of its inputs. False: the result does not fit (an i64
/// overflow, a float too large for an int, a division by zero): the run is given up.
using NumberFunction = bool (*)(const Operands& operands);

/// The function of a node whose operands and results are all numbers; null if it is no such
/// operator.
NumberFunction number_function(const graph::Node& node);

}  // namespace janus::execute
