// How callables are named in reports.
#pragma once

#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

/// How callables are named in reports.
std::string describe_callable(const Value& callee);

}  // namespace janus::frontend
