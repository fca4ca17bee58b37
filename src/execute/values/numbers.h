// Scalar operators on Python numbers, between slots and the functions of ops/number.h, and the one
// element of a tensor as a number.
#pragma once

#include "execute/values/operands.h"
#include "graph/graph.h"
#include "ops/number.h"

namespace janus::execute {

/// Computes one operator from the slots of its inputs. False: the result does not fit (an i64
/// overflow, a division by zero, ...): the run is given up.
bool run_number(ops::NumberFunction function, const Operands& operands);
/// Whether that is why.
bool divides_by_zero(const graph::Node& node, const Operands& operands);

/// Whether read_item knows the element type of an `item` node's operand.
bool can_read_item(const graph::Node& node);
/// The one element at `data` as a number of the node's result type.
Slot read_item(const graph::Node& node, const void* data);

}  // namespace janus::execute
