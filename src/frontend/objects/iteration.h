// Iteration: iter(), next() and list() of containers, tensors and objects whose class defines them.
#pragma once

#include <memory>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// iter(value); refuses what can't be iterated over at generation time.
std::shared_ptr<Iterator> iterate(Interpreter& interpreter, const Value& value);

/// Implements elements_of() of core/operations.h.
std::vector<Value> list_elements(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
