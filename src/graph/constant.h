// The operator `constant`, the only one that this room itself needs: a known number, flag, string
// or None.
#pragma once

#include <optional>

#include "graph/op.h"

namespace janus::op {
extern const graph::OpDef constant;
}

namespace janus::graph {

/// The known value: the attribute of the `constant` node that defines `value`; else null.
const AttributeValue* constant_value(const Value* value);
/// The same as a double or integer; nullopt for anything else. A bool counts as 0 or 1.
std::optional<double> constant_number(const Value* value);
std::optional<int64_t> constant_integer(const Value* value);

}  // namespace janus::graph
