// Zeros and ones with a fixed probability, as dropout draws them.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// `bernoulli_p` from torch's default generator; null for other operators, or where torch does not
/// draw as is done here.
std::unique_ptr<execute::Operation> bind_bernoulli(const graph::Node& node);

}  // namespace janus::torch
