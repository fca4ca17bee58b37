// What a plan does, as text: one line a step, for tests, `explain` and TORCHJANUS_LOG.
#pragma once

#include <string>

#include "execute/plan/plan.h"

namespace janus::execute {

std::string describe(const Plan& plan);

}  // namespace janus::execute
