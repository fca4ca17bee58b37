// Views: operators whose result shares memory with their operand in eager. Primary views have a
// gradient and a `scatter`, so that writes through them can be applied to the base. Composite views
// are decomposed into primary ones when the front end meets them, since writes need the parts.
//
// `reshape` and `contiguous` share memory or copy, depending on strides: they have the trait `view`
// and a scatter, and whoever writes through them must know the strides.
#include "ops/shape.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "ops/expression.h"
#include "ops/list.h"
#include "ops/row_rules.h"
#include "ops/view_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace ops {

Shape resolve_shape(const Infer& infer, const Shape& from, const Shape& wanted) {
  Shape result = wanted;
  std::vector<Dim> numerator(from.begin(), from.end()), denominator;
  std::optional<size_t> open;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].is(-1)) {
      if (wanted[i].is_constant() && wanted[i].value() < 0)
        infer.fail(cat("invalid size ", wanted[i]));
      denominator.push_back(wanted[i]);
    } else if (open) {
      infer.fail("two sizes are -1");
    } else {
      open = i;
    }
  }
  std::erase_if(denominator, [&](const Dim& dim) {  // equal factors cancel
    const auto same = std::find(numerator.begin(), numerator.end(), dim);
    if (same == numerator.end() || dim.is(0)) return false;
    numerator.erase(same);
    return true;
  });
  const Dim count = element_count(numerator), taken = element_count(denominator);
  if (open) {
    if (taken.is(0)) infer.fail("a size of -1 beside one of 0");
    result[*open] = floor_divide(count, taken);
    if (!(result[*open] * taken == count))
      infer.fail(cat("a tensor of ", to_string(count), " elements cannot get the shape"));
  } else if (!(count == taken)) {
    infer.fail(cat("sizes do not match: ", count, " elements against ", taken));
  }
  return result;
}

}  // namespace ops

namespace {

// ---- Reshaping --------------------------------------------------------------------------------

std::vector<Type> infer_reshape(const Infer& infer) {
  const char* name = infer.attributes.has("size") ? "size" : "shape";
  const Type& type = tensor_type(infer, 0);
  return typed(infer, resolve_shape(infer, type.shape, list_attribute(infer.attributes, name)));
}

/// The gradient of operators that only reshape.
void reshape_back(Vjp& g) { g.add(0, reshaped(dout(g), in(g, 0).shape())); }

Value* scatter_reshaped(const Scatter& s) {
  return reshaped(Expression(s.builder, s.replacement), s.base->type.shape);
}

Value* fold_same_type(const Fold& fold) {
  return fold.inputs[0]->type == fold.node.output()->type ? fold.inputs[0] : nullptr;
}

/// Decomposes a composite that only reshapes, by the shape of its result.
std::vector<Value*> decompose_to_reshape(const Decompose& d) {
  return {reshaped(in(d, 0), d.node.output()->type.shape)};
}

std::vector<Value*> decompose_to_view(const Decompose& d) {
  const Shape& shape = d.node.output()->type.shape;
  return {apply(op::view, {{"size", shape}}, in(d, 0))};
}

std::vector<Type> infer_flatten(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  const int64_t start = dim_of(infer, type.rank(), "start_dim");
  const int64_t end = dim_of(infer, type.rank(), "end_dim");
  if (start > end) infer.fail("start_dim comes after end_dim");
  if (type.shape.empty()) return typed(infer, {Dim(1)});
  Shape shape(type.shape.begin(), type.shape.begin() + start);
  shape.push_back(element_count(Shape(type.shape.begin() + start, type.shape.begin() + end + 1)));
  shape.insert(shape.end(), type.shape.begin() + end + 1, type.shape.end());
  return typed(infer, shape);
}

std::vector<Type> infer_unflatten(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (type.shape.empty()) infer.fail("a tensor without dimensions");
  const int64_t dim = dim_of(infer, type.rank());
  const Shape sizes =
      resolve_shape(infer, {at(type.shape, dim)}, list_attribute(infer.attributes, "sizes"));
  Shape shape(type.shape.begin(), type.shape.begin() + dim);
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.insert(shape.end(), type.shape.begin() + dim + 1, type.shape.end());
  return typed(infer, shape);
}

std::vector<Type> infer_squeeze(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  std::vector<int64_t> dims;
  for (const Dim& entry : list_attribute(infer.attributes, "dim")) {
    if (!entry.is_constant()) infer.fail("a dimension must be known");
    dims.push_back(wrap_dim(infer, entry.value(), type.rank()));
  }
  Shape shape;
  for (int64_t i = 0; i < type.rank(); ++i) {
    const Dim& size = at(type.shape, i);
    const bool named = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (named && !size.is_constant() && size.lower_bound().value_or(0) < 2)
      infer.fail(cat("whether ", size, " is 1 is not known"));
    if (!named || !size.is(1)) shape.push_back(size);
  }
  return typed(infer, shape);
}

std::vector<Value*> decompose_squeeze_all(const Decompose& d) {
  Shape dims(static_cast<size_t>(in(d, 0).rank()));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  return {apply(op::squeeze, {{"dim", dims}}, in(d, 0))};
}

std::vector<Type> infer_squeeze_all(const Infer& infer) {
  Shape shape;
  for (const Dim& size : tensor_type(infer, 0).shape) {
    if (!size.is_constant() && size.lower_bound().value_or(0) < 2)
      infer.fail(cat("whether ", size, " is 1 is not known"));
    if (!size.is(1)) shape.push_back(size);
  }
  return typed(infer, shape);
}

std::vector<Type> infer_unsqueeze(const Infer& infer) {
  Shape shape = tensor_type(infer, 0).shape;
  const int64_t dim = dim_of(infer, infer.type(0).rank() + 1);
  shape.insert(shape.begin() + dim, Dim(1));
  return typed(infer, shape);
}

// ---- Order of dimensions ----------------------------------------------------------------------

std::vector<Type> infer_transpose(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  const int64_t dim0 = dim_of(infer, type.rank(), "dim0");
  const int64_t dim1 = dim_of(infer, type.rank(), "dim1");
  Shape shape = type.shape;
  if (!shape.empty()) std::swap(at(shape, dim0), at(shape, dim1));
  return typed(infer, shape);
}

Expression transposed_as(const Node& node, const Expression& x) {
  return apply(op::transpose, node.attributes, x);
}

/// Folds a transposition of a transposition by the same dimensions.
Value* fold_transpose(const Fold& fold) {
  const Node* inner = fold.inputs[0]->definition;
  const int64_t rank = fold.inputs[0]->type.rank();
  const int64_t dim0 = dim_of(fold.node, rank, "dim0"), dim1 = dim_of(fold.node, rank, "dim1");
  if (dim0 == dim1) return fold.inputs[0];
  if (inner == nullptr || inner->op != &op::transpose) return nullptr;
  const int64_t inner0 = dim_of(*inner, rank, "dim0"), inner1 = dim_of(*inner, rank, "dim1");
  const bool same = std::minmax(dim0, dim1) == std::minmax(inner0, inner1);
  return same ? inner->inputs[0] : nullptr;
}

std::vector<int64_t> order_of(const Attributes& attributes, int64_t rank) {
  std::vector<int64_t> order;
  for (const Dim& dim : list_attribute(attributes, "dims"))
    order.push_back(wrap_dim(dim.is_constant() ? dim.value() : rank, rank));
  return order;
}

bool is_permutation(std::vector<int64_t> order, int64_t rank) {
  std::sort(order.begin(), order.end());
  std::vector<int64_t> all(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  return order == all;
}

std::vector<Type> infer_permute(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  const auto order = order_of(infer.attributes, type.rank());
  if (!is_permutation(order, type.rank())) infer.fail("dims is no permutation");
  Shape shape;
  for (const int64_t dim : order) shape.push_back(at(type.shape, dim));
  return typed(infer, shape);
}

Expression permuted_back(const Node& node, const Expression& x) {
  const auto order = order_of(node.attributes, x.rank());
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return permuted(x, inverse);
}

/// For each dimension of the result of movedim: the dimension of the operand.
std::vector<int64_t> moved_order(const Attributes& attributes, int64_t rank) {
  const Shape source = list_attribute(attributes, "source");
  const Shape destination = list_attribute(attributes, "destination");
  if (source.size() != destination.size()) throw TypeError("movedim: lists differ in length");
  std::vector<int64_t> order(static_cast<size_t>(rank), -1);
  std::vector<bool> moved(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < source.size(); ++i) {
    if (!source[i].is_constant() || !destination[i].is_constant())
      throw TypeError("movedim: a dimension must be known");
    const int64_t from = wrap_dim(source[i].value(), rank);
    const int64_t to = wrap_dim(destination[i].value(), rank);
    if (from < 0 || to < 0 || from >= rank || to >= rank || moved[static_cast<size_t>(from)] ||
        order[static_cast<size_t>(to)] >= 0)
      throw TypeError("movedim: dimensions out of range or repeated");
    order[static_cast<size_t>(to)] = from;
    moved[static_cast<size_t>(from)] = true;
  }
  int64_t next = 0;
  for (int64_t& from : order) {
    if (from >= 0) continue;
    while (moved[static_cast<size_t>(next)]) ++next;
    from = next++;
  }
  return order;
}

std::vector<Type> infer_movedim(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  Shape shape;
  for (const int64_t dim : moved_order(infer.attributes, type.rank()))
    shape.push_back(at(type.shape, dim));
  return typed(infer, shape);
}

template <bool exactly_two>
std::vector<Type> infer_matrix_transpose(const Infer& infer) {
  Shape shape = tensor_type(infer, 0).shape;
  if (exactly_two ? shape.size() > 2 : shape.size() < 2)
    infer.fail(cat("transpose of ", infer.type(0)));
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return typed(infer, shape);
}

std::vector<Value*> decompose_matrix_transpose(const Decompose& d) {
  const auto x = in(d, 0);
  return {x.rank() < 2 ? x.value() : transposed(x, x.rank() - 2, x.rank() - 1).value()};
}

// ---- Broadcasting -----------------------------------------------------------------------------

std::vector<Type> infer_expand(const Infer& infer) {
  const Shape& from = tensor_type(infer, 0).shape;
  Shape shape = list_attribute(infer.attributes, "size");
  if (shape.size() < from.size()) infer.fail("fewer sizes than dimensions");
  const size_t extra = shape.size() - from.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is(-1)) {
      if (i < extra) infer.fail("-1 for a dimension that does not exist");
      shape[i] = from[i - extra];
    } else if (i >= extra && !from[i - extra].is(1)) {
      require_equal(infer, from[i - extra], shape[i], "a dimension cannot be expanded");
    }
  }
  return typed(infer, shape);
}

std::vector<Type> shape_of_second(const Infer& infer) {
  resolve_shape(infer, tensor_type(infer, 0).shape, tensor_type(infer, 1).shape);
  return typed(infer, infer.type(1).shape);
}

std::vector<Type> expanded_to_second(const Infer& infer) {
  const Shape& shape = tensor_type(infer, 1).shape;
  const Shape& from = tensor_type(infer, 0).shape;
  if (from.size() > shape.size() || broadcast(infer, from, shape) != shape)
    infer.fail(cat(infer.type(0), " does not expand to ", infer.type(1)));
  return typed(infer, shape);
}

}  // namespace

std::optional<ops::Permutation> ops::permutation_of(const OpDef* op, const Attributes& attributes,
                                                    size_t rank) {
  const auto from_front = [&](int64_t dim) {
    return static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(rank)));
  };
  Permutation result(rank);
  std::iota(result.begin(), result.end(), 0);
  if (op == &op::transpose && rank > 0) {
    std::swap(result[from_front(attributes.get<int64_t>("dim0"))],
              result[from_front(attributes.get<int64_t>("dim1"))]);
    return result;
  }
  if ((op == &op::t || op == &op::matrix_transpose) && rank >= 2) {
    std::swap(result[rank - 2], result[rank - 1]);
    return result;
  }
  if (op == &op::permute) {
    const auto& dims = attributes.get<Shape>("dims");
    for (size_t i = 0; i < rank; ++i) result[i] = from_front(dims[i].value());
    return result;
  }
  return std::nullopt;
}

constinit const OpDef op::view{
    .name = "view",
    .doc = "The same elements in another shape; one size may be -1.",
    .schema = "(Tensor self, int[] size) -> Tensor",
    .aten = "view",
    .python = "Tensor.view",
    .traits = primary_view,
    .sees = Sees::viewed,
    .has_plain_gradient = true,
    .infer = infer_reshape,
    .fold = fold_same_type,
    .vjp = reshape_back,
    .scatter = scatter_reshaped,
    .rows = for_rows::same_elements,
};

constinit const OpDef op::reshape{
    .name = "reshape",
    .doc = "The same elements in another shape, a copy if strides demand it.",
    .schema = "(Tensor self, int[] shape) -> Tensor",
    .aten = "reshape",
    .python = "reshape Tensor.reshape",
    .traits = primary_view,
    .sees = Sees::reshaped,
    .has_plain_gradient = true,
    .infer = infer_reshape,
    .fold = fold_same_type,
    .vjp = reshape_back,
    .scatter = scatter_reshaped,
    .rows = for_rows::same_elements,
};

constinit const OpDef op::view_as{
    .name = "view_as",
    .doc = "self in the shape of other.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .python = "Tensor.view_as",
    .traits = composite_view,
    .sees = Sees::viewed,
    .has_plain_gradient = true,
    .infer = shape_of_second,
    .decompose = decompose_to_view,
};

constinit const OpDef op::reshape_as{
    .name = "reshape_as",
    .doc = "self in the shape of other, a copy if strides demand it.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .python = "Tensor.reshape_as",
    .traits = composite_view,
    .sees = Sees::reshaped,
    .has_plain_gradient = true,
    .infer = shape_of_second,
    .decompose = decompose_to_reshape,
};

constinit const OpDef op::flatten{
    .name = "flatten",
    .doc = "Dimensions start_dim to end_dim as one.",
    .schema = "(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
    .python = "flatten Tensor.flatten",
    .traits = composite_view,
    .sees = Sees::reshaped,
    .has_plain_gradient = true,
    .infer = infer_flatten,
    .decompose = decompose_to_reshape,
};

constinit const OpDef op::unflatten{
    .name = "unflatten",
    .doc = "One dimension as several.",
    .schema = "(Tensor self, int dim, int[] sizes) -> Tensor",
    .python = "unflatten Tensor.unflatten",
    .traits = composite_view,
    .sees = Sees::viewed,
    .has_plain_gradient = true,
    .infer = infer_unflatten,
    .decompose = decompose_to_view,
};

constinit const OpDef op::squeeze{
    .name = "squeeze",
    .doc = "Without those of the given dimensions that have size 1.",
    .schema = "(Tensor self, int[1] dim) -> Tensor",
    .aten = "squeeze.dims",
    .python = "squeeze Tensor.squeeze",
    .traits = primary_view,
    .sees = Sees::squeezed,
    .has_plain_gradient = true,
    .infer = infer_squeeze,
    .fold = fold_same_type,
    .vjp = reshape_back,
    .scatter = scatter_reshaped,
    .rows = for_rows::same_elements,
};

constinit const OpDef op::squeeze_all{
    .name = "squeeze_all",
    .doc = "Without dimensions of size 1.",
    .schema = "(Tensor self) -> Tensor",
    .python = "squeeze Tensor.squeeze",
    .traits = composite_view,
    .sees = Sees::squeezed,
    .has_plain_gradient = true,
    .infer = infer_squeeze_all,
    .decompose = decompose_squeeze_all,
};

constinit const OpDef op::unsqueeze{
    .name = "unsqueeze",
    .doc = "With a dimension of size 1 more.",
    .schema = "(Tensor self, int dim) -> Tensor",
    .aten = "unsqueeze",
    .python = "unsqueeze Tensor.unsqueeze",
    .traits = primary_view,
    .sees = Sees::unsqueezed,
    .has_plain_gradient = true,
    .infer = infer_unsqueeze,
    .vjp = reshape_back,
    .scatter = scatter_reshaped,
    .rows = for_rows::same_elements,
};

constinit const OpDef op::transpose{
    .name = "transpose",
    .doc = "Two dimensions swapped.",
    .schema = "(Tensor self, int dim0, int dim1) -> Tensor",
    .aten = "transpose.int",
    .python = "transpose swapaxes swapdims Tensor.transpose Tensor.swapaxes Tensor.swapdims",
    .traits = primary_view,
    .sees = Sees::permuted,
    .has_plain_gradient = true,
    .infer = infer_transpose,
    .fold = fold_transpose,
    .vjp = [](Vjp& g) { g.add(0, transposed_as(g.node(), dout(g))); },
    .scatter = [](const Scatter& s) -> Value* {
      return transposed_as(s.view, Expression(s.builder, s.replacement));
    },
    .rows = for_rows::transpose,
};

constinit const OpDef op::t{
    .name = "t",
    .doc = "A matrix transposed; vectors as they are.",
    .schema = "(Tensor self) -> Tensor",
    .python = "t Tensor.t Tensor.T",
    .traits = composite_view,
    .sees = Sees::permuted,
    .has_plain_gradient = true,
    .infer = infer_matrix_transpose<true>,
    .decompose = decompose_matrix_transpose,
};

constinit const OpDef op::matrix_transpose{
    .name = "mT",
    .doc = "The last two dimensions swapped.",
    .schema = "(Tensor self) -> Tensor",
    .python = "adjoint Tensor.adjoint Tensor.mT Tensor.mH",
    .traits = composite_view,
    .sees = Sees::permuted,
    .has_plain_gradient = true,
    .infer = infer_matrix_transpose<false>,
    .decompose = decompose_matrix_transpose,
};

constinit const OpDef op::permute{
    .name = "permute",
    .doc = "The dimensions in another order.",
    .schema = "(Tensor self, int[] dims) -> Tensor",
    .aten = "permute",
    .python = "permute Tensor.permute",
    .traits = primary_view,
    .sees = Sees::permuted,
    .has_plain_gradient = true,
    .infer = infer_permute,
    .vjp = [](Vjp& g) { g.add(0, permuted_back(g.node(), dout(g))); },
    .scatter = [](const Scatter& s) -> Value* {
      return permuted_back(s.view, Expression(s.builder, s.replacement));
    },
    .rows = for_rows::permute,
};

constinit const OpDef op::movedim{
    .name = "movedim",
    .doc = "Some dimensions moved to other places.",
    .schema = "(Tensor self, int[1] source, int[1] destination) -> Tensor",
    .python = "movedim moveaxis Tensor.movedim Tensor.moveaxis",
    .traits = composite_view,
    .sees = Sees::differs,
    .has_plain_gradient = true,
    .infer = infer_movedim,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {permuted(in(d, 0), moved_order(d.node.attributes, in(d, 0).rank()))};
    },
};

constinit const OpDef op::expand{
    .name = "expand",
    .doc = "Dimensions of size 1 repeated without a copy; -1 keeps a size.",
    .schema = "(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
    .aten = "expand",
    .python = "Tensor.expand broadcast_to Tensor.broadcast_to",
    .traits = primary_view,
    .sees = Sees::expanded,
    .has_plain_gradient = true,
    .infer = infer_expand,
    .fold = fold_same_type,
    .vjp = [](Vjp& g) { g.add(0, sum_to(dout(g), in(g, 0).shape())); },
    .rows = for_rows::expand,
};

constinit const OpDef op::expand_as{
    .name = "expand_as",
    .doc = "self expanded to the shape of other.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .python = "Tensor.expand_as",
    .traits = composite_view,
    .sees = Sees::expanded,
    .has_plain_gradient = true,
    .infer = expanded_to_second,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {apply(op::expand, {{"size", in(d, 1).shape()}}, in(d, 0))};
    },
};

constinit const OpDef op::sum_to_size{
    .name = "sum_to_size",
    .doc = "The sum over the dimensions that broadcasting to self would have added or repeated.",
    .schema = "(Tensor self, int[] size) -> Tensor",
    .python = "Tensor.sum_to_size",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer =
        [](const Infer& infer) {
          const Shape size = list_attribute(infer.attributes, "size");
          const Shape& from = tensor_type(infer, 0).shape;
          if (size.size() > from.size() || broadcast(infer, size, from) != from)
            infer.fail(janus::cat(infer.type(0), " is no broadcast of the size"));
          return typed(infer, size);
        },
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {sum_to(in(d, 0), d.node.output()->type.shape)};
    },
};

constinit const OpDef op::contiguous{
    .name = "contiguous",
    .doc = "The tensor itself if its memory is in order, else a copy.",
    .schema = "(Tensor self, *, MemoryFormat memory_format=contiguous_format) -> Tensor",
    .aten = "contiguous",
    .python = "Tensor.contiguous",
    .traits = Trait::pure | Trait::view | Trait::linear,
    .sees = Sees::in_order,
    .has_plain_gradient = true,
    .infer = same_as_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g)); },
    .scatter = [](const Scatter& s) -> Value* { return s.replacement; },
};

}  // namespace janus
