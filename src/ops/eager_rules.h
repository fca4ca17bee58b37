// Rules of eager's operators that differ between versions of torch. torch/eager_rules.h says which
// version has which; without torch in the process they are those of torch 2.13.
#pragma once

namespace janus::ops {

struct EagerRules {
  /// Whether an operand of `clamp` that equals its bound passes no gradient on, and shares it with
  /// a bound that is a tensor. Otherwise the operand has all of it.
  bool clamp_shares_ties = false;
  /// Whether a number as a bound of `clamp` that an integer dtype can't hold becomes the nearest
  /// one that it holds. Otherwise negative ones wrap in an unsigned dtype, and the rest raise.
  bool clamp_fits_bounds = false;
  /// Whether `sinh` and `cosh` of float32 are computed in float64, and rounded.
  bool hyperbolic_in_double = false;
  /// What the gradient of `log10` divides by, a natural logarithm of 10.
  double log10_divisor = 2.3025850929940456;
};

/// torch/ writes it before the first graph; then it is only read.
EagerRules& eager_rules();

}  // namespace janus::ops
