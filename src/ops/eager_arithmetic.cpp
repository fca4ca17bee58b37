#include "ops/eager_arithmetic.h"

namespace janus::ops {

using graph::DType;

EagerArithmetic& eager_arithmetic() {
  static EagerArithmetic instance;
  return instance;
}

Element product_and_sum(bool contracts, const Element& a, const Element& b, const Element& c) {
  if (!contracts || !graph::is_floating(c.dtype())) return a * b + c;
  graph::ScalarCode& code = *c.code();
  const Scalar operands[] = {a.as(code, c.dtype()), b.as(code, c.dtype()), Scalar(c)};
  return {code, code.call("fma", operands)};
}

Element eager_root(const Element& x) {
  // Half precision is widened, so the processor's instruction is exact enough.
  const DType stored = x.code()->node().output()->type.dtype;
  const EagerArithmetic& eager = eager_arithmetic();
  const Root root = stored == DType::f32   ? eager.root_of_f32
                    : stored == DType::f64 ? eager.root_of_f64
                                           : Root::exact;
  return maths(root == Root::refined ? "refined_sqrt" : "sqrt", x);
}

}  // namespace janus::ops
