// What a function that the run defined is rebuilt of after it: its code, and the variables around
// it.
#pragma once

#include <string_view>
#include <utility>

#include "frontend/values/value.h"

namespace janus::frontend {

/// The frame that a free variable of the closure belongs to, and its value; null: there is none in
/// the run.
std::pair<const Variables*, Value> free_variable(const Closure& closure, std::string_view name);

/// The code object of a closure that a function of the program defines; null if that is not sure.
python::Object code_of_definition(const Closure& closure);

}  // namespace janus::frontend
