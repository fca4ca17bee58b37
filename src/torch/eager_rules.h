// What eager computes differently in the versions of torch that we are built with: 2.11 to 2.15.
// Each difference has the version that brought it. Of gradients,
// torchgen/packaged/autograd/derivatives.yaml in torch's own package says what a version computes.
// What differs in torch's C++ interface is in version.h.
#pragma once

#include "ops/eager_rules.h"
#include "torch/version.h"

namespace janus::torch {

inline ops::EagerRules rules_of_this_version() {
  ops::EagerRules rules;
  // Since 2.14 tensors as bounds are treated as `maximum` and `minimum` treat theirs.
  rules.clamp_shares_ties = since(14);
  // Since 2.15, and raises only where no element can be within the bounds.
  rules.clamp_fits_bounds = since(15);
  // Since 2.15, so that they are infinite only where their results are.
  rules.hyperbolic_in_double = since(15);
  // Until 2.13 the last digits of the constant round to another double than the logarithm.
  rules.log10_divisor = since(14) ? 2.30258509299404568402 : 2.3025850929940456;
  return rules;
}

}  // namespace janus::torch
