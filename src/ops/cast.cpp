// Changes of dtype, copies, and conversion between tensors of one element and Python numbers.
#include "ops/element.h"
#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

std::vector<Type> with_dtype(const Infer& infer, DType dtype) {
  if (is_complex(dtype)) infer.fail("complex result");
  return {Type::tensor(dtype, tensor_type(infer, 0).shape)};
}

template <DType dtype>
std::vector<Type> infer_conversion(const Infer& infer) {
  return with_dtype(infer, dtype);
}

/// A conversion to the dtype of the result, under whatever name.
std::vector<Value*> decompose_conversion(const Decompose& d) {
  return {apply(op::to, {{"dtype", d.node.output()->type.dtype}}, in(d, 0))};
}

std::vector<Type> dtype_of_second(const Infer& infer) {
  return with_dtype(infer, tensor_type(infer, 1).dtype);
}

}  // namespace

constinit const OpDef op::to{
    .name = "to",
    .doc = "The elements in another dtype; eager gives the tensor itself if it has it already.",
    .schema =
        "(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor",
    .aten = "to.dtype",
    .python = "Tensor.to",
    .traits = Trait::pure | Trait::elementwise | Trait::linear,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .half_gradient = HalfGradient::stepwise,
    .cost = Cost::cheap,
    .infer =
        [](const Infer& infer) { return with_dtype(infer, *dtype_attribute(infer.attributes)); },
    .fold = [](const Fold& fold) -> Value* {
      const bool same = fold.inputs[0]->type == fold.node.output()->type;
      return same && !flag_attribute(fold.node.attributes, "copy") ? fold.inputs[0] : nullptr;
    },
    .vjp =
        [](Vjp& g) {
          if (is_floating(in(g, 0).dtype())) g.add(0, cast(dout(g), in(g, 0).dtype()));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return convert(raw_element(k, 0), k.node().output()->type.dtype);
    },
};

constinit const OpDef op::to_other{
    .name = "to_other",
    .doc = "The elements in the dtype of another tensor.",
    .schema =
        "(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.to",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = dtype_of_second,
    .decompose = decompose_conversion,
};

constinit const OpDef op::type_as{
    .name = "type_as",
    .doc = "The elements in the dtype of another tensor.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .python = "Tensor.type_as",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = dtype_of_second,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_float{
    .name = "to_float",
    .doc = "The elements as f32.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.float",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_conversion<DType::f32>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_double{
    .name = "to_double",
    .doc = "The elements as f64.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.double",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_conversion<DType::f64>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_half{
    .name = "to_half",
    .doc = "The elements as f16.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.half",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_conversion<DType::f16>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_bfloat16{
    .name = "to_bfloat16",
    .doc = "The elements as bf16.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.bfloat16",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_conversion<DType::bf16>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_long{
    .name = "to_long",
    .doc = "The elements as i64.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.long",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_conversion<DType::i64>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_int{
    .name = "to_int",
    .doc = "The elements as i32.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.int",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_conversion<DType::i32>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_short{
    .name = "to_short",
    .doc = "The elements as i16.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.short",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_conversion<DType::i16>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_char{
    .name = "to_char",
    .doc = "The elements as i8.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.char",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_conversion<DType::i8>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_byte{
    .name = "to_byte",
    .doc = "The elements as u8.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.byte",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_conversion<DType::u8>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::to_bool{
    .name = "to_bool",
    .doc = "The elements as b1.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .python = "Tensor.bool",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_conversion<DType::b1>,
    .decompose = decompose_conversion,
};

constinit const OpDef op::clone{
    .name = "clone",
    .doc = "A copy.",
    .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .aten = "clone",
    .python = "clone Tensor.clone",
    .traits = Trait::pure | Trait::elementwise | Trait::linear,
    .raises = Raises::never,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = same_as_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g)); },
    .scalar = [](ScalarCode& k) -> Scalar { return k.raw_input(0); },
};

constinit const OpDef op::positive{
    .name = "positive",
    .doc = "The tensor itself.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "positive",
    .python = "positive Tensor.positive Tensor.__pos__",
    .traits = Trait::pure | Trait::view | Trait::linear,
    .sees = Sees::differs,
    .has_plain_gradient = true,
    .infer =
        [](const Infer& infer) {
          if (tensor_type(infer, 0).dtype == DType::b1) infer.fail("boolean operand");
          return same_as_first(infer);
        },
    .fold = [](const Fold& fold) -> Value* { return fold.inputs[0]; },
    .vjp = [](Vjp& g) { g.add(0, dout(g)); },
    .scatter = [](const Scatter& s) -> Value* { return s.replacement; },
};

constinit const OpDef op::item{
    .name = "item",
    .doc = "The only element of a tensor as a Python number: f64, i64 or bool by its dtype.",
    .schema = "(Tensor self) -> Scalar",
    .python = "Tensor.item",
    .traits = Trait::pure | Trait::no_gradient,
    .computed_by = ComputedBy::executor,
    .layout = Layout::none,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      if (!element_count(type.shape).is(1))
        infer.fail(janus::cat(type, " has not exactly one element"));
      if (type.dtype == DType::b1) return {Type::boolean()};
      return {is_floating(type.dtype) ? Type::f64() : Type::i64()};
    },
};

}  // namespace janus
