// Iteration: iter(), next() and list() of containers, tensors and objects whose class defines them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// iter(value); refuses what can't be iterated over at generation time.
std::shared_ptr<Iterator> iterate(Interpreter& interpreter, const Value& value);

/// Goes through the elements as Python's own functions do that add each to a container before they
/// ask for the next: an iterator may read what has been added. A list or tuple is taken as it is at
/// first.
void for_each_element(Interpreter& interpreter, const Value& value,
                      const std::function<void(const Value&)>& use);

/// Implements elements_of() of core/operations.h.
std::vector<Value> list_elements(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
