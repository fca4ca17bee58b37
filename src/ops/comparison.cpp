// Elementwise comparisons, logical and bitwise operators. Comparisons compute in the promoted
// dtype; with NaN only `ne` is true.
#include "ops/element.h"
#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait test = Trait::pure | Trait::elementwise | Trait::no_gradient;

/// The rule of bitwise operators: operands of integers or booleans.
std::vector<Type> bitwise(const Infer& infer) {
  const auto types = arithmetic(infer);
  if (is_floating(types[0].dtype)) infer.fail("floating operands");
  return types;
}

/// The rule of logical operators, which take no numbers in place of tensors.
std::vector<Type> logical(const Infer& infer) {
  tensor_type(infer, 0);
  tensor_type(infer, 1);
  return comparison(infer);
}

Element truth(ScalarCode& k, size_t index) {
  const Element x = element(k, index);
  return x.dtype() == DType::b1 ? x : x != 0;
}

}  // namespace

constinit const OpDef op::eq{
    .name = "eq",
    .doc = "Whether elements are equal.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "eq.Tensor",
    .python = "eq Tensor.eq",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .cost = Cost::cheap,
    .infer = comparison,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) == element(k, 1); },
};

constinit const OpDef op::ne{
    .name = "ne",
    .doc = "Whether elements differ.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "ne.Tensor",
    .python = "ne not_equal Tensor.ne Tensor.not_equal",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .cost = Cost::cheap,
    .infer = comparison,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) != element(k, 1); },
};

constinit const OpDef op::lt{
    .name = "lt",
    .doc = "Whether elements of self are less.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "lt.Tensor",
    .python = "lt less Tensor.lt Tensor.less",
    .traits = test,
    .raises = Raises::never_for_floats,
    .cost = Cost::cheap,
    .infer = comparison,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) < element(k, 1); },
};

constinit const OpDef op::le{
    .name = "le",
    .doc = "Whether elements of self are less or equal.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "le.Tensor",
    .python = "le less_equal Tensor.le Tensor.less_equal",
    .traits = test,
    .raises = Raises::never_for_floats,
    .cost = Cost::cheap,
    .infer = comparison,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) <= element(k, 1); },
};

constinit const OpDef op::gt{
    .name = "gt",
    .doc = "Whether elements of self are greater.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "gt.Tensor",
    .python = "gt greater Tensor.gt Tensor.greater",
    .traits = test,
    .raises = Raises::never_for_floats,
    .cost = Cost::cheap,
    .infer = comparison,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) > element(k, 1); },
};

constinit const OpDef op::ge{
    .name = "ge",
    .doc = "Whether elements of self are greater or equal.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "ge.Tensor",
    .python = "ge greater_equal Tensor.ge Tensor.greater_equal",
    .traits = test,
    .raises = Raises::never_for_floats,
    .cost = Cost::cheap,
    .infer = comparison,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) >= element(k, 1); },
};

constinit const OpDef op::logical_and{
    .name = "logical_and",
    .doc = "Whether both elements are not zero.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "logical_and",
    .python = "logical_and Tensor.logical_and",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .infer = logical,
    .scalar = [](ScalarCode& k) -> Scalar { return truth(k, 0) & truth(k, 1); },
};

constinit const OpDef op::logical_or{
    .name = "logical_or",
    .doc = "Whether one of the elements is not zero.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "logical_or",
    .python = "logical_or Tensor.logical_or",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .infer = logical,
    .scalar = [](ScalarCode& k) -> Scalar { return truth(k, 0) | truth(k, 1); },
};

constinit const OpDef op::logical_xor{
    .name = "logical_xor",
    .doc = "Whether exactly one of the elements is not zero.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "logical_xor",
    .python = "logical_xor Tensor.logical_xor",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .infer = logical,
    .scalar = [](ScalarCode& k) -> Scalar { return truth(k, 0) ^ truth(k, 1); },
};

constinit const OpDef op::logical_not{
    .name = "logical_not",
    .doc = "Whether each element is zero.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "logical_not",
    .python = "logical_not Tensor.logical_not",
    .traits = test,
    .raises = Raises::never_for_floats,
    .infer = boolean_like_first,
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = raw_element(k, 0);
      return x == 0;
    },
};

constinit const OpDef op::bitwise_and{
    .name = "bitwise_and",
    .doc = "The bits set in both elements; of booleans, and.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "bitwise_and.Tensor",
    .python = "bitwise_and Tensor.bitwise_and",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .infer = bitwise,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) & element(k, 1); },
};

constinit const OpDef op::bitwise_or{
    .name = "bitwise_or",
    .doc = "The bits set in one of the elements; of booleans, or.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "bitwise_or.Tensor",
    .python = "bitwise_or Tensor.bitwise_or",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .infer = bitwise,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) | element(k, 1); },
};

constinit const OpDef op::bitwise_xor{
    .name = "bitwise_xor",
    .doc = "The bits in which elements differ; of booleans, exclusive or.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "bitwise_xor.Tensor",
    .python = "bitwise_xor Tensor.bitwise_xor",
    .traits = test | Trait::commutative,
    .raises = Raises::never_for_floats,
    .infer = bitwise,
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) ^ element(k, 1); },
};

constinit const OpDef op::bitwise_not{
    .name = "bitwise_not",
    .doc = "All bits of each element turned over; of booleans, not.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "bitwise_not",
    .python = "bitwise_not Tensor.bitwise_not Tensor.__invert__",
    .traits = test,
    .raises = Raises::never_for_floats,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      if (is_floating(tensor_type(infer, 0).dtype)) infer.fail("floating operand");
      return {infer.type(0)};
    },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return x.dtype() == DType::b1 ? x == 0 : x ^ -1.0;
    },
};

}  // namespace janus
