// Creation of tensors, also by the form of another: constants, ranges, identity matrices. `empty`
// is missing, because its contents are not determined.
#include <cmath>

#include "ops/element.h"
#include "ops/expression.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait creation = Trait::pure | Trait::no_gradient;

DType wanted_dtype(const Infer& infer, DType otherwise) {
  const DType dtype = dtype_attribute(infer.attributes).value_or(otherwise);
  if (is_complex(dtype)) infer.fail("complex result");
  return dtype;
}

Shape wanted_size(const Infer& infer) {
  Shape size = list_attribute(infer.attributes, "size");
  for (const Dim& dim : size)
    if (dim.lower_bound().value_or(-1) < 0) infer.fail(cat("size ", dim));
  return size;
}

std::vector<Type> infer_sized(const Infer& infer) {
  return {Type::tensor(wanted_dtype(infer, default_dtype()), wanted_size(infer))};
}

std::vector<Type> infer_full(const Infer& infer) {
  require_number(infer, 0);
  return {Type::tensor(wanted_dtype(infer, dtype_of_number(infer.type(0))), wanted_size(infer))};
}

std::vector<Type> infer_like(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  return {Type::tensor(wanted_dtype(infer, type.dtype), type.shape)};
}

std::vector<Type> infer_new(const Infer& infer) {
  return {Type::tensor(wanted_dtype(infer, tensor_type(infer, 0).dtype), wanted_size(infer))};
}

/// The number of elements of a range, whose bounds must be known.
std::vector<Type> infer_range(const Infer& infer, std::optional<double> start,
                              std::optional<double> end, std::optional<double> step) {
  if (!start || !end || !step) infer.fail("the length depends on values");
  if (*step == 0 || (*step > 0 ? *start > *end : *start < *end) || !std::isfinite(*start) ||
      !std::isfinite(*end))
    infer.fail(cat("range from ", *start, " to ", *end, " by ", *step));
  bool integral = true;
  for (const Value* bound : infer.inputs) integral &= bound->type.kind != Type::Kind::f64;
  const DType dtype = wanted_dtype(infer, integral ? DType::i64 : default_dtype());
  // Eager rounds the bounds first if the result is integral.
  if (!integral && !is_floating(dtype)) infer.fail("an integer range with bounds that are not");
  const double length = std::ceil((*end - *start) / *step);
  return {Type::tensor(dtype, {Dim(static_cast<int64_t>(length))})};
}

Dim square_size(const Infer& infer, const char* name) {
  const Dim size = dim_attribute(infer.attributes, name);
  if (size.lower_bound().value_or(-1) < 0) infer.fail(cat("size ", size));
  return size;
}

std::vector<Value*> decompose_new(const Decompose& d, const OpDef& of_size) {
  const Type& type = d.node.output()->type;
  Value* value = of_size(d.builder, {}, {{"size", type.shape}, {"dtype", type.dtype}});
  return {value};
}

}  // namespace

constinit const OpDef op::zeros{
    .name = "zeros",
    .doc = "Zeros of a size.",
    .schema =
        "(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "zeros",
    .python = "zeros",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_sized,
};

constinit const OpDef op::ones{
    .name = "ones",
    .doc = "Ones of a size.",
    .schema =
        "(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "ones",
    .python = "ones",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_sized,
};

constinit const OpDef op::full{
    .name = "full",
    .doc = "A number in every element.",
    .schema =
        "(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .aten = "full",
    .python = "full",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::never,
    .infer = infer_full,
    .rows = for_rows::full,
};

constinit const OpDef op::scalar_tensor{
    .name = "scalar_tensor",
    .doc = "A number as a tensor without dimensions.",
    .schema =
        "(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "scalar_tensor",
    .python = "scalar_tensor",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      return {Type::tensor(wanted_dtype(infer, default_dtype()), {})};
    },
};

constinit const OpDef op::zeros_like{
    .name = "zeros_like",
    .doc = "Zeros of the shape and dtype of a tensor.",
    .schema =
        "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .aten = "zeros_like",
    .python = "zeros_like",
    .traits = creation,
    .layout = Layout::differs,
    .raises = Raises::never,
    .infer = infer_like,
};

constinit const OpDef op::new_zeros{
    .name = "new_zeros",
    .doc = "Zeros of a size in the dtype of a tensor.",
    .schema =
        "(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None) -> Tensor",
    .python = "Tensor.new_zeros",
    .traits = creation | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .infer = infer_new,
    .decompose = [](const Decompose& d) { return decompose_new(d, op::zeros); },
};

constinit const OpDef op::ones_like{
    .name = "ones_like",
    .doc = "Ones of the shape and dtype of a tensor.",
    .schema =
        "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .aten = "ones_like",
    .python = "ones_like",
    .traits = creation,
    .layout = Layout::differs,
    .raises = Raises::never,
    .infer = infer_like,
};

constinit const OpDef op::new_ones{
    .name = "new_ones",
    .doc = "Ones of a size in the dtype of a tensor.",
    .schema =
        "(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None) -> Tensor",
    .python = "Tensor.new_ones",
    .traits = creation | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .infer = infer_new,
    .decompose = [](const Decompose& d) { return decompose_new(d, op::ones); },
};

constinit const OpDef op::full_like{
    .name = "full_like",
    .doc = "A number in every element of the shape and dtype of a tensor.",
    .schema =
        "(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .aten = "full_like",
    .python = "full_like",
    .traits = creation,
    .layout = Layout::differs,
    .raises = Raises::never,
    .infer = infer_like,
};

constinit const OpDef op::new_full{
    .name = "new_full",
    .doc = "A number in every element of a size, in the dtype of a tensor.",
    .schema =
        "(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "new_full",
    .python = "Tensor.new_full",
    .traits = creation,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .infer = infer_new,
};

constinit const OpDef op::arange{
    .name = "arange",
    .doc = "0, 1, ... below end.",
    .schema =
        "(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "arange",
    .python = "arange",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .infer =
        [](const Infer& infer) {
          return infer_range(infer, 0.0, constant_number(infer.inputs[0]), 1.0);
        },
};

constinit const OpDef op::arange_start{
    .name = "arange_start",
    .doc = "start, start + step, ... below end.",
    .schema =
        "(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "arange.start_step",
    .python = "arange",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .infer =
        [](const Infer& infer) {
          return infer_range(infer, constant_number(infer.inputs[0]),
                             constant_number(infer.inputs[1]), constant_number(infer.inputs[2]));
        },
};

constinit const OpDef op::linspace{
    .name = "linspace",
    .doc = "Numbers at equal distances from start to end.",
    .schema =
        "(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "linspace",
    .python = "linspace",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      return {Type::tensor(wanted_dtype(infer, default_dtype()), {square_size(infer, "steps")})};
    },
};

constinit const OpDef op::eye{
    .name = "eye",
    .doc = "The identity matrix.",
    .schema =
        "(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "eye",
    .python = "eye",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Dim n = square_size(infer, "n");
      return {Type::tensor(wanted_dtype(infer, default_dtype()), {n, n})};
    },
};

constinit const OpDef op::eye_m{
    .name = "eye_m",
    .doc = "A matrix with ones on the diagonal.",
    .schema =
        "(int n, int m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "eye.m",
    .python = "eye",
    .traits = creation,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Dim n = square_size(infer, "n"), m = square_size(infer, "m");
      return {Type::tensor(wanted_dtype(infer, default_dtype()), {n, m})};
    },
};

// ---- New contents for a tensor: the meaning of in-place forms ----------------------------------

constinit const OpDef op::fill{
    .name = "fill",
    .doc = "A tensor's likeness with a number in every element.",
    .schema = "(Tensor self, Scalar value) -> Tensor",
    .aten = "fill.Scalar",
    .python = "fill Tensor.fill_",
    .traits = Trait::pure,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::values,
    .infer = same_as_first,
    .vjp = [](Vjp& g) { g.add(0, zeros_of(in(g, 0))); },
};

constinit const OpDef op::fill_tensor{
    .name = "fill_tensor",
    .doc = "A tensor's likeness with another's only element in every element.",
    .schema = "(Tensor self, Tensor value) -> Tensor",
    .aten = "fill.Tensor",
    .python = "fill Tensor.fill_",
    .traits = Trait::pure,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer =
        [](const Infer& infer) {
          tensor_of_rank(infer, 1, 0);
          return same_as_first(infer);
        },
    .vjp =
        [](Vjp& g) {
          if (g.needs(0)) g.add(0, zeros_of(in(g, 0)));
          add_gradient(g, 1, [&] { return dout(g); });
        },
};

constinit const OpDef op::zero{
    .name = "zero",
    .doc = "A tensor's likeness with zeros.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "zero",
    .python = "zero_ Tensor.zero_",
    .traits = Trait::pure,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::values,
    .infer = same_as_first,
    .vjp = [](Vjp& g) { g.add(0, zeros_of(in(g, 0))); },
};

constinit const OpDef op::copy{
    .name = "copy",
    .doc = "src broadcast to self's shape, in self's dtype.",
    .schema = "(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    .aten = "copy",
    .python = "Tensor.copy_",
    .traits = Trait::pure,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& self = tensor_type(infer, 0);
      const Shape& from = tensor_type(infer, 1).shape;
      if (from.size() > self.shape.size() || broadcast(infer, from, self.shape) != self.shape)
        infer.fail(janus::cat(infer.type(1), " does not broadcast to ", self));
      return {self};
    },
    .vjp =
        [](Vjp& g) {
          if (g.needs(0)) g.add(0, zeros_of(in(g, 0)));
          add_gradient(g, 1, [&] { return dout(g); });
        },
};

}  // namespace janus
