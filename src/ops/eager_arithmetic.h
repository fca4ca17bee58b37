// How eager's operators round on this processor, to the last bit, where that depends on how torch
// and its libraries were built and on the code that they choose. We do not guess: torch is asked
// once, before the first graph (torch/eager_arithmetic.cpp). Without torch in the process nothing
// contracts, and roots are rounded correctly.
#pragma once

#include <array>

#include "graph/type.h"
#include "ops/element.h"

namespace janus::ops {

/// The formula of gelu without approximation, where e is the error function of x / sqrt(2).
enum class Gelu {
  scaled_first,   ///< (x / 2)(1 + e): ATen's
  scaled_last,    ///< (x (1 + e)) / 2, where infinity gives NaN
  halves_summed,  ///< x / 2 + (x / 2) e
};

enum class Root {
  exact,    ///< correctly rounded: the processor's instruction
  refined,  ///< the processor's estimate, refined by steps that round one by one
};

struct EagerArithmetic {
  /// Whether product and sum are rounded once (fused multiply-add): in `add` and `sub` with a
  /// factor, in `lerp`, in `addcmul`.
  bool contracts_sums = false, contracts_lerp = false, contracts_products = false;
  /// Whether each step is rounded to half precision, where torch has no vectors of it: the product
  /// in `add` and `sub` with a factor, the root that a power of -0.5 inverts.
  bool rounds_products_of_f16 = false, rounds_products_of_bf16 = false;
  bool rounds_roots_of_bf16 = false;
  Root root_of_f32 = Root::exact, root_of_f64 = Root::exact;
  /// Called when a program first uses gelu, since a library takes time to start; null: ATen's.
  Gelu (*gelu)(graph::DType dtype) = nullptr;
};

/// torch/ writes it before the first graph; then it is only read.
EagerArithmetic& eager_arithmetic();

/// a * b + c, rounded once or twice.
Element product_and_sum(bool contracts, const Element& a, const Element& b, const Element& c);

/// The square root of eager's `sqrt`.
Element eager_root(const Element& x);

}  // namespace janus::ops
