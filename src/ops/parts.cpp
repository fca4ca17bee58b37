// Views of a part: an index, a slice, a diagonal, a list of pieces. Their gradients put the part
// into zeros, their scatters put it into the base.
#include <algorithm>
#include <array>
#include <optional>

#include "ops/expression.h"
#include "ops/row_rules.h"
#include "ops/shape.h"
#include "ops/view_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace ops {

namespace {

/// A bound of a slice, clamped to [0, size]; nullopt if that depends on unknown values.
std::optional<Dim> clamped_position(const Dim& position, const Dim& size) {
  Dim from_start = position;
  if (position.is_constant()) {
    if (position.value() < 0) from_start = size + position;
  } else if (at_least_zero(Dim(-1) - position)) {
    from_start = size + position;
  } else if (!at_least_zero(position)) {
    return std::nullopt;
  }
  if (!at_least_zero(from_start)) from_start = maximum(from_start, 0);
  return at_least_zero(size - from_start) ? from_start : minimum(from_start, size);
}

}  // namespace

SliceRange slice_range(const Attributes& attributes, const Dim& size) {
  const auto bound = [&](std::string_view name, const Dim& otherwise) {
    if (attributes.is_none(name)) return otherwise;
    const Dim given = dim_attribute(attributes, name);
    const auto position = clamped_position(given, size);
    if (!position) throw TypeError(cat("slice: whether ", given, " is negative is not known"));
    return *position;
  };
  SliceRange range{.start = bound("start", 0), .stop = bound("end", size), .step = 1, .length = 0};
  range.step = integer_attribute(attributes, "step");
  if (range.step < 1) throw TypeError(cat("slice: step ", range.step));
  const Dim length = floor_divide(range.stop - range.start + (range.step - 1), range.step);
  range.length = at_least_zero(length) ? length : maximum(length, 0);
  return range;
}

}  // namespace ops

namespace {

std::vector<Type> infer_select(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (type.shape.empty()) infer.fail("a tensor without dimensions");
  const int64_t dim = dim_of(infer, type.rank());
  const Dim size = at(type.shape, dim), index = dim_attribute(infer.attributes, "index");
  if (index.is_constant()) {
    const auto least = size.lower_bound().value_or(0);
    if (index.value() >= least || index.value() < -least)
      infer.fail(cat("index ", index, " for a dimension of size ", size));
  }
  const int64_t dims[] = {dim};
  return typed(infer, reduced_shape(type.shape, dims, false));
}

std::vector<Type> infer_slice(const Infer& infer) {
  Shape shape = tensor_type(infer, 0).shape;
  if (shape.empty()) infer.fail("a tensor without dimensions");
  Dim& size = at(shape, dim_of(infer, infer.type(0).rank()));
  size = slice_range(infer.attributes, size).length;
  return typed(infer, shape);
}

Value* fold_whole_slice(const Fold& fold) {
  const Type& type = fold.inputs[0]->type;
  if (!(type == fold.node.output()->type)) return nullptr;
  const auto range =
      slice_range(fold.node.attributes, at(type.shape, dim_of(fold.node, type.rank())));
  return range.start.is(0) && range.step == 1 ? fold.inputs[0] : nullptr;
}

std::vector<Type> infer_narrow(const Infer& infer) {
  Shape shape = tensor_type(infer, 0).shape;
  if (shape.empty()) infer.fail("a tensor without dimensions");
  Dim& size = at(shape, dim_of(infer, infer.type(0).rank()));
  const Dim start = dim_attribute(infer.attributes, "start");
  const Dim length = dim_attribute(infer.attributes, "length");
  const Dim rest = size - length;
  if (length.is_constant() && length.value() < 0) infer.fail(cat("length ", length));
  const bool is_behind = start.is_constant() && rest.is_constant() && start.value() > rest.value();
  const bool is_before = start.is_constant() && size.is_constant() && start.value() < -size.value();
  if (is_behind || is_before) infer.fail(cat("start ", start, ", length ", length, " of ", size));
  size = length;
  return typed(infer, shape);
}

/// The start of a narrow, counted from the front.
Dim narrow_start(const Node& node, const Dim& size) {
  const Dim start = dim_attribute(node.attributes, "start");
  return start.is_constant() && start.value() < 0 ? size + start : start;
}

Attributes slice_attributes(int64_t dim, const SliceRange& range) {
  return {{"dim", dim},
          {"start", to_attribute(range.start)},
          {"end", to_attribute(range.stop)},
          {"step", range.step}};
}

/// The attributes of a `slice` for a node that is a slice or a narrow of a tensor of that shape.
Attributes as_slice(const Node& node, const Shape& shape) {
  const int64_t dim = dim_of(node, static_cast<int64_t>(shape.size()));
  const Dim& size = at(shape, dim);
  if (node.op == &op::slice) return slice_attributes(dim, slice_range(node.attributes, size));
  const Dim start = narrow_start(node, size);
  const Dim length = dim_attribute(node.attributes, "length");
  return slice_attributes(dim,
                          {.start = start, .stop = start + length, .step = 1, .length = length});
}

void slice_gradient(Vjp& g) {
  const Shape& shape = in(g, 0).shape();
  Attributes attributes = as_slice(g.node(), shape);
  attributes.set("input_sizes", shape);
  g.add(0, apply(op::slice_backward, std::move(attributes), dout(g)));
}

Value* scatter_slice(const Scatter& s) {
  return op::slice_scatter(s.builder, {s.base, s.replacement},
                           as_slice(s.view, s.base->type.shape));
}

std::vector<Type> infer_input_sizes(const Infer& infer) {
  tensor_type(infer, 0);
  return typed(infer, list_attribute(infer.attributes, "input_sizes"));
}

/// The gradient of the gradient of a part: the part again.
void part_of_gradient(Vjp& g, const OpDef& part, std::initializer_list<const char*> names) {
  Attributes attributes;
  for (const char* name : names) attributes.set(name, *g.node().attributes.find(name));
  g.add(0, apply(part, std::move(attributes), dout(g)));
}

/// Gradients of putting `src` (input 1) into a part of `self` (input 0).
void scatter_gradient(Vjp& g, const OpDef& scatter, const OpDef& part) {
  const Attributes& attributes = g.node().attributes;
  if (g.needs(0)) g.add(0, apply(scatter, attributes, dout(g), zeros_of(in(g, 1))));
  if (g.needs(1)) g.add(1, apply(part, attributes, dout(g)));
}

/// The rule of scatters. `part`: the view that the operand replaces; null if only the run knows its
/// length.
std::vector<Type> infer_part_scatter(const Infer& infer, const OpDef* part) {
  const Type& src = tensor_type(infer, 1);
  const Type replaced =
      part == nullptr
          ? Type::tensor(tensor_type(infer, 0).dtype, src.shape)
          : graph::infer_results(*part, infer.inputs.first(1), infer.attributes).front();
  if (src != replaced) infer.fail(cat("expected ", replaced, ", came ", src));
  return {infer.type(0)};
}

bool has_known_start(const Attributes& attributes) {
  return attributes.is_none("start") || dim_attribute(attributes, "start").is_constant();
}

std::vector<Type> infer_diagonal(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (type.rank() < 2) infer.fail(cat("the diagonal of ", type));
  const int64_t dim1 = dim_of(infer, type.rank(), "dim1");
  const int64_t dim2 = dim_of(infer, type.rank(), "dim2");
  const int64_t offset = integer_attribute(infer.attributes, "offset");
  if (dim1 == dim2) infer.fail("the two dimensions are the same");
  const Dim rows = at(type.shape, dim1) - Dim(std::max<int64_t>(-offset, 0));
  const Dim columns = at(type.shape, dim2) - Dim(std::max<int64_t>(offset, 0));
  const int64_t dims[] = {dim1, dim2};
  Shape shape = reduced_shape(type.shape, dims, false);
  const Dim length = minimum(rows, columns);
  shape.push_back(at_least_zero(length) ? length : maximum(length, 0));
  return typed(infer, shape);
}

// ---- Rows -------------------------------------------------------------------------------------

void require_position(const Infer& infer, size_t input) {
  if (infer.type(input).kind != Type::Kind::i64)
    infer.fail(cat("expected an index, got ", infer.type(input)));
}

std::vector<Type> infer_row(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (type.shape.empty()) infer.fail("a tensor without dimensions");
  require_position(infer, 1);
  return typed(infer, Shape(type.shape.begin() + 1, type.shape.end()));
}

std::vector<Type> infer_row_backward(const Infer& infer) {
  require_position(infer, 1);
  Shape shape = tensor_type(infer, 0).shape;
  shape.insert(shape.begin(), dim_attribute(infer.attributes, "size"));
  return typed(infer, shape);
}

std::vector<Type> infer_add_to_row(const Infer& infer) {
  const Type &type = tensor_type(infer, 0), &row = tensor_type(infer, 1);
  require_position(infer, 2);
  const bool fits = !type.shape.empty() && row.dtype == type.dtype &&
                    Shape(type.shape.begin() + 1, type.shape.end()) == row.shape;
  if (!fits) infer.fail(cat(row, " is no row of ", type));
  return {type};
}

// ---- Lists of parts ---------------------------------------------------------------------------

std::vector<Type> parts_of(const Infer& infer, const std::vector<Dim>& lengths) {
  Shape shape = tensor_type(infer, 0).shape;
  if (shape.empty()) infer.fail("a tensor without dimensions");
  const int64_t dim = dim_of(infer, infer.type(0).rank());
  std::vector<Type> types;
  for (const Dim& length : lengths) {
    at(shape, dim) = length;
    types.push_back(Type::tensor(infer.type(0).dtype, shape));
  }
  return types;
}

int64_t known_size(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (type.shape.empty()) infer.fail("a tensor without dimensions");
  const Dim& size = at(type.shape, dim_of(infer, type.rank()));
  if (!size.is_constant()) infer.fail(cat("the number of parts depends on ", size));
  return size.value();
}

std::vector<Dim> equal_parts(int64_t size, int64_t length) {
  std::vector<Dim> lengths;
  for (int64_t start = 0; start < size; start += length)
    lengths.push_back(std::min(length, size - start));
  if (lengths.empty()) lengths.push_back(0);
  return lengths;
}

std::vector<Type> infer_split(const Infer& infer) {
  const int64_t length = integer_attribute(infer.attributes, "split_size");
  const int64_t size = known_size(infer);
  if (length < 1) infer.fail(cat("split size ", length));
  return parts_of(infer, equal_parts(size, length));
}

std::vector<Type> infer_split_sizes(const Infer& infer) {
  const Shape lengths = list_attribute(infer.attributes, "split_sizes");
  const Shape& shape = tensor_type(infer, 0).shape;
  if (shape.empty()) infer.fail("a tensor without dimensions");
  Dim total = 0;
  for (const Dim& length : lengths) total = total + length;
  require_equal(infer, total, at(shape, dim_of(infer, infer.type(0).rank())),
                "the parts do not add up to the size");
  return parts_of(infer, lengths);
}

std::vector<Type> infer_chunk(const Infer& infer) {
  const int64_t chunks = integer_attribute(infer.attributes, "chunks");
  const int64_t size = known_size(infer);
  if (chunks < 1) infer.fail(cat(chunks, " chunks"));
  const int64_t length = (size + chunks - 1) / chunks;
  if (length == 0) return parts_of(infer, std::vector<Dim>(static_cast<size_t>(chunks), Dim(0)));
  return parts_of(infer, equal_parts(size, length));
}

/// Adjacent slices, one for each result.
std::vector<Value*> decompose_parts(const Decompose& d) {
  const auto x = in(d, 0);
  const int64_t dim = dim_of(d.node, x.rank());
  std::vector<Value*> parts;
  Dim start = 0;
  for (const Value* output : d.node.outputs) {
    const Dim stop = start + at(output->type.shape, dim);
    parts.push_back(sliced(x, dim, start, stop));
    start = stop;
  }
  return parts;
}

std::vector<Type> infer_unbind(const Infer& infer) {
  const auto count = static_cast<size_t>(known_size(infer));
  const Type& type = infer.type(0);
  const int64_t dims[] = {dim_of(infer, type.rank())};
  return std::vector<Type>(count, typed(infer, reduced_shape(type.shape, dims, false))[0]);
}

std::vector<Value*> decompose_unbind(const Decompose& d) {
  const auto x = in(d, 0);
  const int64_t dim = dim_of(d.node, x.rank());
  std::vector<Value*> parts;
  for (size_t i = 0; i < d.node.outputs.size(); ++i)
    parts.push_back(apply(op::select, {{"dim", dim}, {"index", static_cast<int64_t>(i)}}, x));
  return parts;
}

// ---- Which part a view sees -------------------------------------------------------------------

/// One index of the dimension; an index that may count from the end is not known.
Part one_at(const Node& node, int64_t dim, const Dim& index) {
  Part part{.dim = dim, .start = {}, .drops = true};
  if (at_least_zero(index))
    part.start = index;
  else if (index.is_constant())
    part.start = at(node.inputs[0]->type.shape, dim) + index;
  return part;
}

int64_t dim_of_part(const Node& node) { return dim_of(node, node.inputs[0]->type.rank()); }

Part part_of_select(const Node& node, size_t) {
  return one_at(node, dim_of_part(node), dim_attribute(node.attributes, "index"));
}

Part part_of_unbind(const Node& node, size_t output) {
  return one_at(node, dim_of_part(node), Dim(static_cast<int64_t>(output)));
}

/// At a number that only the run knows.
Part part_of_row(const Node&, size_t) { return {.dim = 0, .start = {}, .drops = true}; }

Part part_of_slice(const Node& node, size_t) {
  const int64_t dim = dim_of_part(node);
  const SliceRange range = slice_range(node.attributes, at(node.inputs[0]->type.shape, dim));
  return {.dim = dim, .start = range.start, .length = range.length, .step = range.step};
}

Part part_of_narrow(const Node& node, size_t) {
  const int64_t dim = dim_of_part(node);
  return {.dim = dim,
          .start = narrow_start(node, at(node.inputs[0]->type.shape, dim)),
          .length = dim_attribute(node.attributes, "length")};
}

/// Of several parts that follow each other.
Part part_of_split(const Node& node, size_t output) {
  const int64_t dim = dim_of_part(node);
  const auto length = [&](size_t i) { return at(node.outputs[i]->type.shape, dim); };
  Dim start = 0;
  for (size_t i = 0; i < output; ++i) start = start + length(i);
  return {.dim = dim, .start = start, .length = length(output)};
}

}  // namespace

constinit const OpDef op::select{
    .name = "select",
    .doc = "The part at one index of a dimension.",
    .schema = "(Tensor self, int dim, int index) -> Tensor",
    .aten = "select.int",
    .python = "select Tensor.select",
    .traits = primary_view,
    .sees = Sees::part,
    .raises = Raises::outside_place,
    .has_plain_gradient = true,
    .infer = infer_select,
    .vjp =
        [](Vjp& g) {
          Attributes attributes = g.node().attributes;
          attributes.set("input_sizes", in(g, 0).shape());
          g.add(0, apply(op::select_backward, std::move(attributes), dout(g)));
        },
    .scatter = [](const Scatter& s) -> Value* {
      return op::select_scatter(s.builder, {s.base, s.replacement}, s.view.attributes);
    },
    .part = part_of_select,
    .rows = for_rows::along_dim,
};

constinit const OpDef op::slice{
    .name = "slice",
    .doc = "Part of a dimension: start, start + step, ... below end, as Python's slices.",
    .schema = "(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    .aten = "slice.Tensor",
    .traits = primary_view,
    .sees = Sees::part,
    .has_plain_gradient = true,
    .infer = infer_slice,
    .fold = fold_whole_slice,
    .vjp = slice_gradient,
    .scatter = scatter_slice,
    .part = part_of_slice,
    .rows = for_rows::along_dim,
};

constinit const OpDef op::narrow{
    .name = "narrow",
    .doc = "`length` elements of a dimension from `start` on; the range is checked by the run.",
    .schema = "(Tensor self, int dim, int start, int length) -> Tensor",
    .aten = "narrow",
    .python = "narrow Tensor.narrow",
    .traits = primary_view,
    .sees = Sees::part,
    .raises = Raises::outside_place,
    .has_plain_gradient = true,
    .infer = infer_narrow,
    .vjp = slice_gradient,
    .scatter = scatter_slice,
    .part = part_of_narrow,
    .rows = for_rows::along_dim,
};

constinit const OpDef op::diagonal{
    .name = "diagonal",
    .doc = "The diagonals of matrices, as a new last dimension.",
    .schema = "(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .aten = "diagonal",
    .python = "diagonal Tensor.diagonal",
    .traits = primary_view,
    .sees = Sees::differs,
    .has_plain_gradient = true,
    .infer = infer_diagonal,
    .vjp =
        [](Vjp& g) {
          Attributes attributes = g.node().attributes;
          attributes.set("input_sizes", in(g, 0).shape());
          g.add(0, apply(op::diagonal_backward, std::move(attributes), dout(g)));
        },
    .scatter = [](const Scatter& s) -> Value* {
      return op::diagonal_scatter(s.builder, {s.base, s.replacement}, s.view.attributes);
    },
};

constinit const OpDef op::row{
    .name = "row",
    .doc =
        "The part at one index of the first dimension, where the index is a number of the run. One "
        "that is out of range fails the run.",
    .schema = "(Tensor self, Scalar index) -> Tensor",
    .traits = Trait::pure | Trait::linear,
    .computed_by = ComputedBy::loops,
    .sees = Sees::part,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .infer = infer_row,
    .vjp =
        [](Vjp& g) {
          g.add(0,
                apply(op::row_backward, {{"size", in(g, 0).shape().front()}}, dout(g), in(g, 1)));
        },
    .scatter = [](const Scatter& s) -> Value* {
      Value* index =
          op::full(s.builder, {s.view.inputs[1]}, {{"size", Shape{}}, {"dtype", DType::i64}});
      return op::index_put(s.builder, {s.base, index, s.replacement});
    },
    .part = part_of_row,
    .rows = for_rows::row,
};

constinit const OpDef op::row_backward{
    .name = "row_backward",
    .doc = "Zeros with the gradient in one row of `size`.",
    .schema = "(Tensor grad_output, Scalar index, *, int size) -> Tensor",
    .traits = Trait::pure | Trait::linear,
    .computed_by = ComputedBy::loops,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_row_backward,
    .vjp = [](Vjp& g) { g.add(0, apply(op::row, dout(g), in(g, 1))); },
    .rows = for_rows::row_backward,
};

constinit const OpDef op::add_to_row{
    .name = "add_to_row",
    .doc = "The tensor with something added to one row.",
    .schema = "(Tensor self, Tensor other, Scalar index) -> Tensor",
    .traits = Trait::pure | Trait::linear,
    .computed_by = ComputedBy::loops,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_add_to_row,
    .vjp =
        [](Vjp& g) {
          g.add(0, dout(g));
          if (g.needs(1)) g.add(1, apply(op::row, dout(g), in(g, 2)));
        },
    .adds = for_rows::adds_always,
    .sum_of_rows = for_rows::sum_in_rows,
};

constinit const OpDef op::select_backward{
    .name = "select_backward",
    .doc = "Zeros with the gradient at one index.",
    .schema = "(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    .aten = "select_backward",
    .traits = Trait::pure | Trait::linear,
    .raises = Raises::outside_part,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_input_sizes,
    .vjp = [](Vjp& g) { part_of_gradient(g, op::select, {"dim", "index"}); },
};

constinit const OpDef op::slice_backward{
    .name = "slice_backward",
    .doc = "Zeros with the gradient in a slice.",
    .schema =
        "(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor",
    .aten = "slice_backward",
    .traits = Trait::pure | Trait::linear,
    .raises = Raises::outside_part,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_input_sizes,
    .vjp =
        [](Vjp& g) {
          const Attributes& attributes = g.node().attributes;
          const Dim start = dim_attribute(attributes, "start");
          if (integer_attribute(attributes, "step") != 1 || start.is_constant())
            return part_of_gradient(g, op::slice, {"dim", "start", "end", "step"});
          const Dim length = dim_attribute(attributes, "end") - start;
          g.add(0, apply(op::narrow,
                         {{"dim", *attributes.find("dim")},
                          {"start", to_attribute(start)},
                          {"length", to_attribute(length)}},
                         dout(g)));
        },
    .rows = for_rows::slice_backward,
};

constinit const OpDef op::diagonal_backward{
    .name = "diagonal_backward",
    .doc = "Zeros with the gradient on a diagonal.",
    .schema = "(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    .aten = "diagonal_backward",
    .traits = Trait::pure | Trait::linear,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_input_sizes,
    .vjp = [](Vjp& g) { part_of_gradient(g, op::diagonal, {"offset", "dim1", "dim2"}); },
};

constinit const OpDef op::select_scatter{
    .name = "select_scatter",
    .doc = "self with src at one index of a dimension.",
    .schema = "(Tensor self, Tensor src, int dim, int index) -> Tensor",
    .aten = "select_scatter",
    .python = "select_scatter Tensor.select_scatter",
    .layout = Layout::first_operand,
    .raises = Raises::outside_part,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) { return infer_part_scatter(infer, &op::select); },
    .vjp = [](Vjp& g) { scatter_gradient(g, op::select_scatter, op::select); },
};

constinit const OpDef op::slice_scatter{
    .name = "slice_scatter",
    .doc = "self with src in a slice of a dimension.",
    .schema =
        "(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> "
        "Tensor",
    .aten = "slice_scatter",
    .python = "slice_scatter Tensor.slice_scatter",
    .layout = Layout::first_operand,
    .raises = Raises::outside_part,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer =
        [](const Infer& infer) {
          return infer_part_scatter(infer,
                                    has_known_start(infer.attributes) ? &op::slice : nullptr);
        },
    .vjp =
        [](Vjp& g) {
          const Attributes& attributes = g.node().attributes;
          if (g.needs(0))
            g.add(0, apply(op::slice_scatter, attributes, dout(g), zeros_of(in(g, 1))));
          if (!g.needs(1)) return;
          if (has_known_start(attributes)) return g.add(1, apply(op::slice, attributes, dout(g)));
          // The length is that of src, also if the start varies.
          const int64_t dim = dim_of(g.node(), in(g, 0).rank());
          g.add(1, apply(op::narrow,
                         {{"dim", dim},
                          {"start", *attributes.find("start")},
                          {"length", to_attribute(at(in(g, 1).shape(), dim))}},
                         dout(g)));
        },
};

constinit const OpDef op::diagonal_scatter{
    .name = "diagonal_scatter",
    .doc = "self with src on a diagonal.",
    .schema = "(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .aten = "diagonal_scatter",
    .python = "diagonal_scatter Tensor.diagonal_scatter",
    .layout = Layout::first_operand,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) { return infer_part_scatter(infer, &op::diagonal); },
    .vjp = [](Vjp& g) { scatter_gradient(g, op::diagonal_scatter, op::diagonal); },
};

constinit const OpDef op::split{
    .name = "split",
    .doc = "Parts of equal length along a dimension; the last one may be shorter.",
    .schema = "(Tensor self, int split_size, int dim=0) -> Tensor[]",
    .python = "split Tensor.split _VF.split",
    .traits = composite_view,
    .sees = Sees::part,
    .has_plain_gradient = true,
    .infer = infer_split,
    .decompose = decompose_parts,
    .part = part_of_split,
};

constinit const OpDef op::split_with_sizes{
    .name = "split_with_sizes",
    .doc = "Parts of the given lengths along a dimension.",
    .schema = "(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    .python = "split Tensor.split _VF.split_with_sizes Tensor.split_with_sizes split_with_sizes",
    .traits = composite_view,
    .sees = Sees::part,
    .has_plain_gradient = true,
    .infer = infer_split_sizes,
    .decompose = decompose_parts,
    .part = part_of_split,
};

constinit const OpDef op::chunk{
    .name = "chunk",
    .doc = "At most `chunks` parts along a dimension.",
    .schema = "(Tensor self, int chunks, int dim=0) -> Tensor[]",
    .python = "chunk Tensor.chunk",
    .traits = composite_view,
    .sees = Sees::part,
    .has_plain_gradient = true,
    .infer = infer_chunk,
    .decompose = decompose_parts,
    .part = part_of_split,
};

constinit const OpDef op::unbind{
    .name = "unbind",
    .doc = "The parts at each index of a dimension.",
    .schema = "(Tensor self, int dim=0) -> Tensor[]",
    .python = "unbind Tensor.unbind",
    .traits = composite_view,
    .sees = Sees::part,
    .has_plain_gradient = true,
    .infer = infer_unbind,
    .decompose = decompose_unbind,
    .part = part_of_unbind,
};

}  // namespace janus
