// Positions of a slice of which only the run knows a bound.
#pragma once

#include <optional>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// The positions of a slice, of which only the run knows a bound: as many as in the call at hand,
/// which is guarded. Nothing if that is not known, or the slice has a step.
std::optional<std::vector<Value>> slice_positions(Interpreter& interpreter, const SliceValue& slice,
                                                  const Value& length);

}  // namespace janus::frontend
