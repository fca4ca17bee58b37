// What eager's operators compute on the processor at hand, down to the last bit, where that hangs
// on how torch and its libraries were built and on what they choose there. Nobody guesses it: torch
// is asked once, before the first graph (torch/eager_arithmetic.cpp). Without torch in the process
// nothing contracts and roots are rounded correctly.
#pragma once

#include <array>

#include "graph/type.h"
#include "ops/element.h"

namespace janus::ops {

/// How gelu without approximation is computed of x and e, the error function of x / sqrt(2).
enum class Gelu {
  scaled_first,   ///< (x / 2)(1 + e): ATen's
  scaled_last,    ///< (x (1 + e)) / 2, where infinity gives NaN
  halves_summed,  ///< x / 2 + (x / 2) e
};

enum class Root {
  exact,    ///< rounded correctly: the processor's instruction
  refined,  ///< from the processor's estimate, by steps that are rounded one by one
};

struct EagerArithmetic {
  /// Whether the product and the sum are rounded once: of `add` and `sub` with a factor, of `lerp`,
  /// of `addcmul`.
  bool contracts_sums = false, contracts_lerp = false, contracts_products = false;
  Root root_of_f32 = Root::exact, root_of_f64 = Root::exact;
  /// Asked where a program has it, as a library takes its time to begin; null: ATen's.
  Gelu (*gelu)(graph::DType dtype) = nullptr;
};

/// Written before the first graph, by whoever knows torch; then only read.
EagerArithmetic& eager_arithmetic();

/// a * b + c, rounded once or twice.
Element product_and_sum(bool contracts, const Element& a, const Element& b, const Element& c);

/// The square root as eager's `sqrt` gives it.
Element eager_root(const Element& x);

}  // namespace janus::ops
