// Methods of lists, tuples and deques.
#pragma once

#include <memory>
#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The method of a list, tuple or deque; null if it has none of that name.
Value sequence_method(const std::shared_ptr<Sequence>& sequence, const std::string& name);

/// list.append of a list that existed before the call: what it holds does not matter.
Value grow_list(Interpreter& interpreter, const Known& known, const Value& element);

}  // namespace janus::frontend
