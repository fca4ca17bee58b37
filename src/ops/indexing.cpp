// Gather and scatter by index tensors, concatenation, repetition and padding.
#include <algorithm>
#include <array>

#include "base/policy.h"
#include "ops/expression.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

int64_t dim_of(const Infer& infer, const Type& type) {
  return wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
}

int64_t dim_of(const Node& node, int64_t rank) {
  return wrap_dim(integer_attribute(node.attributes, "dim"), rank);
}

/// The type of an index operand: i64, for some operators also i32.
const Type& positions(const Infer& infer, size_t input, bool also_i32 = false) {
  const Type& type = tensor_type(infer, input);
  if (type.dtype != DType::i64 && !(also_i32 && type.dtype == DType::i32))
    infer.fail(cat("positions must be i64, came ", type));
  return type;
}

void require_same_dtype(const Infer& infer, size_t a, size_t b) {
  if (tensor_type(infer, a).dtype != tensor_type(infer, b).dtype)
    infer.fail(cat("dtypes differ: ", infer.type(a), ", ", infer.type(b)));
}

// ---- Along one dimension ----------------------------------------------------------------------

/// Fails unless the indices have self's rank and fit into it, except along the dimension.
void require_inside(const Infer& infer, const Type& self, const Type& index, int64_t dim) {
  if (index.rank() != self.rank()) infer.fail(cat("index ", index, " for ", self));
  for (size_t i = 0; i < self.shape.size(); ++i) {
    if (static_cast<int64_t>(i) == dim || self.shape[i] == index.shape[i]) continue;
    const auto rest = (self.shape[i] - index.shape[i]).lower_bound();
    if (!rest || *rest < 0) infer.fail(cat("index ", index, " reaches out of ", self));
  }
}

std::vector<Type> infer_gather(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const Type& index = positions(infer, 1);
  if (flag_attribute(infer.attributes, "sparse_grad")) infer.fail("a sparse gradient");
  require_inside(infer, self, index, dim_of(infer, self));
  return {Type::tensor(self.dtype, index.shape)};
}

Attributes along(const Node& node) { return {{"dim", *node.attributes.find("dim")}}; }

void gather_gradient(Vjp& g) {
  const auto x = in(g, 0), index = in(g, 1);
  Shape rows = x.shape();
  if (!rows.empty()) rows[static_cast<size_t>(dim_of(g.node(), x.rank()))] = 1;
  if (!rows.empty() && index.shape() == rows)
    return g.add(0, put_at(dout(g), index, x.shape(), dim_of(g.node(), x.rank())));
  g.add(0, apply(op::scatter_add, along(g.node()), zeros_of(x), index, dout(g)));
}

std::vector<Type> infer_scatter(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const Type& index = positions(infer, 1);
  require_inside(infer, self, index, dim_of(infer, self));
  if (infer.type(2).is_tensor()) {
    require_same_dtype(infer, 0, 2);
    // Eager allows a longer source, which is rare.
    if (infer.type(2).shape != index.shape) infer.fail("index and source differ in shape");
  } else {
    require_number(infer, 2);
  }
  return {self};
}

void scatter_gradient(Vjp& g) {
  const auto index = in(g, 1), dy = dout(g);
  if (g.needs(0)) g.add(0, apply(op::scatter_value, along(g.node()), dy, index, 0));
  if (g.needs(2)) g.add(2, apply(op::gather, along(g.node()), dy, index));
}

std::vector<Type> infer_index_select(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const Type& index = positions(infer, 1, true);
  if (index.rank() > 1 || self.shape.empty()) infer.fail(cat("index ", index, " for ", self));
  Shape shape = self.shape;
  shape[static_cast<size_t>(dim_of(infer, self))] = element_count(index.shape);
  return {Type::tensor(self.dtype, shape)};
}

std::vector<Type> infer_index_add(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const Type& index = positions(infer, 1, true);
  const Type& source = tensor_type(infer, 2);
  require_same_dtype(infer, 0, 2);
  if (self.shape.empty() || index.rank() != 1 || source.rank() != self.rank())
    infer.fail(cat("self ", self, ", index ", index, ", source ", source));
  Shape expected = self.shape;
  expected[static_cast<size_t>(dim_of(infer, self))] = index.shape[0];
  if (source.shape != expected) infer.fail(cat("source ", source, " for index ", index));
  return {self};
}

std::vector<Type> infer_take_along(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const Type& index = positions(infer, 1);
  if (infer.attributes.is_none("dim")) infer.fail("without a dimension");
  const int64_t dim = dim_of(infer, self);
  if (self.shape.empty() || index.rank() != self.rank()) infer.fail(cat("index ", index));
  for (size_t i = 0; i < self.shape.size(); ++i)
    if (static_cast<int64_t>(i) != dim)
      require_equal(infer, self.shape[i], index.shape[i], "shapes that would have to broadcast");
  return {Type::tensor(self.dtype, index.shape)};
}

// ---- By several tensors -----------------------------------------------------------------------

/// The indexed dimensions of self, and the shape that replaces them.
struct Indexed {
  std::vector<size_t> dims;
  Shape broadcast;
  bool adjacent = true;
};

Indexed indexed_dims(const Infer& infer, const Type& self, size_t first, size_t count) {
  Indexed indexed;
  if (count > self.shape.size()) infer.fail("more indices than dimensions");
  for (size_t i = 0; i < count; ++i) {
    if (infer.type(first + i).is_none()) continue;
    const Type& index = positions(infer, first + i, true);
    if (!indexed.dims.empty() && indexed.dims.back() + 1 != i) indexed.adjacent = false;
    indexed.dims.push_back(i);
    indexed.broadcast = broadcast(infer, indexed.broadcast, index.shape);
  }
  if (indexed.dims.empty()) infer.fail("no index is a tensor");
  return indexed;
}

/// The result's shape. New dimensions replace adjacent indexed ones in place; else they go to the
/// front.
Shape indexed_shape(const Type& self, const Indexed& indexed) {
  Shape shape;
  const size_t place = indexed.adjacent ? indexed.dims.front() : 0;
  for (size_t i = 0; i <= self.shape.size(); ++i) {
    if (shape.size() == place && (indexed.adjacent ? i == place : i == 0))
      shape.insert(shape.end(), indexed.broadcast.begin(), indexed.broadcast.end());
    if (i == self.shape.size()) break;
    if (std::find(indexed.dims.begin(), indexed.dims.end(), i) == indexed.dims.end())
      shape.push_back(self.shape[i]);
  }
  return shape;
}

std::vector<Type> infer_index(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const auto indexed = indexed_dims(infer, self, 1, infer.inputs.size() - 1);
  return {Type::tensor(self.dtype, indexed_shape(self, indexed))};
}

std::vector<Type> infer_index_put(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const size_t last = infer.inputs.size() - 1;
  const Shape shape = indexed_shape(self, indexed_dims(infer, self, 1, last - 1));
  require_same_dtype(infer, 0, last);
  if (broadcast(infer, infer.type(last).shape, shape) != shape)
    infer.fail(cat("values ", infer.type(last), " do not broadcast to the indexed part"));
  return {self};
}

/// Operands: self, the indices of the node, and further ones.
std::vector<Expression> with_indices(const Vjp& g, const Expression& self, size_t index_count,
                                     std::initializer_list<Expression> last) {
  std::vector<Expression> operands{self};
  for (size_t i = 0; i < index_count; ++i) operands.push_back(in(g, i + 1));
  operands.insert(operands.end(), last);
  return operands;
}

Expression applied(Vjp& g, const OpDef& op, const std::vector<Expression>& operands,
                   Attributes attributes = {}) {
  return Expression(g.builder(), apply_node(op, operands, std::move(attributes))->output());
}

bool is_summed_by_rows(const Type& type) {
  return type.dtype == DType::f32 || type.dtype == DType::f64;
}

/// Rows added up at their places in zeros of that shape: the gradient of a table.
Expression rows_added(const Shape& shape, const Expression& rows, const Expression& index) {
  const Dim count = shape[0];
  const Dim width = element_count(Shape(shape.begin() + 1, shape.end()));
  const auto sums = apply(
      op::embedding_dense_backward,
      {{"num_weights", to_attribute(count)}, {"padding_idx", -1}, {"scale_grad_by_freq", false}},
      reshaped(rows, {element_count(index.shape()), width}),
      reshaped(index, {element_count(index.shape())}));
  return reshaped(sums, shape);
}

/// The dimensions for which the node has index tensors.
std::vector<size_t> indexed_dims(const Node& node) {
  std::vector<size_t> dims;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (!node.inputs[i]->type.is_none()) dims.push_back(i - 1);
  return dims;
}

/// The index counted from the start, if it is negative.
Expression from_start(const Expression& index, const Dim& size) {
  const auto from_end = index + number(*index.builder(), size);
  return apply(op::where, apply(op::lt, index, 0), from_end, index);
}

/// The gradient if the first `count` dimensions are indexed: they are one dimension with computed
/// indices.
void leading_gradient(Vjp& g, size_t count) {
  const Shape& shape = in(g, 0).shape();
  Expression place = from_start(in(g, 1), shape[0]);
  for (size_t d = 1; d < count; ++d)
    place = cast(place, DType::i64) * number(g.builder(), shape[d]) +
            from_start(in(g, d + 1), shape[d]);
  Shape rows{element_count(Shape(shape.begin(), shape.begin() + static_cast<int64_t>(count)))};
  rows.insert(rows.end(), shape.begin() + static_cast<int64_t>(count), shape.end());
  g.add(0, reshaped(rows_added(rows, dout(g), place), shape));
}

/// The gradient if a single other dimension is indexed.
void inner_gradient(Vjp& g, size_t dim) {
  const auto x = in(g, 0);
  const auto index = from_start(in(g, dim + 1), x.shape()[dim]);
  const Dim count = element_count(index.shape());
  Shape parts = x.shape();
  parts[dim] = count;
  g.add(0, apply(op::index_add, {{"dim", static_cast<int64_t>(dim)}}, zeros_of(x),
                 reshaped(index, {count}), reshaped(dout(g), parts)));
}

void index_gradient(Vjp& g) {
  const auto dims = indexed_dims(g.node());
  if (is_summed_by_rows(in(g, 0).type())) {
    if (dims.back() + 1 == dims.size()) return leading_gradient(g, dims.size());
    if (dims.size() == 1) return inner_gradient(g, dims.front());
  }
  const size_t count = g.node().inputs.size() - 1;
  const auto operands = with_indices(g, zeros_of(in(g, 0)), count, {dout(g)});
  g.add(0, applied(g, op::index_put, operands, {{"accumulate", true}}));
}

void index_put_gradient(Vjp& g) {
  const size_t last = g.node().inputs.size() - 1;
  const auto dy = dout(g);
  if (g.needs(0)) {
    const bool accumulates = flag_attribute(g.node().attributes, "accumulate");
    const auto zeroed = with_indices(g, dy, last - 1, {zeros_of(in(g, last))});
    g.add(0, accumulates ? dy : applied(g, op::index_put, zeroed));
  }
  add_gradient(g, last, [&] { return applied(g, op::index, with_indices(g, dy, last - 1, {})); });
}

// ---- Joining ----------------------------------------------------------------------------------

/// The promoted dtype of all operands; all are tensors.
DType joined_dtype(const Infer& infer) {
  if (infer.inputs.empty()) infer.fail("no tensor is given");
  std::vector<size_t> all(infer.inputs.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
    tensor_type(infer, i);
  }
  return promoted(infer, all);
}

std::vector<Type> infer_cat(const Infer& infer) {
  const DType dtype = joined_dtype(infer);
  const Type& first = infer.type(0);
  if (first.shape.empty()) infer.fail("a tensor without dimensions");
  const auto dim = static_cast<size_t>(dim_of(infer, first));
  Shape shape = first.shape;
  for (size_t i = 1; i < infer.inputs.size(); ++i) {
    const Shape& other = infer.type(i).shape;
    if (other.size() != shape.size()) infer.fail(cat("ranks differ: ", first, ", ", infer.type(i)));
    for (size_t j = 0; j < shape.size(); ++j)
      if (j != dim) require_equal(infer, shape[j], other[j], "sizes differ");
    shape[dim] = shape[dim] + other[dim];
  }
  return {Type::tensor(dtype, shape)};
}

/// x moved by `start` places within a tensor of shape `size`.
Expression moved(const Expression& x, const Shape& size, const std::vector<int64_t>& start,
                 const Expression& fill) {
  Shape matrix(size.size() * size.size(), Dim(0)), offset;
  for (size_t d = 0; d < size.size(); ++d) {
    matrix[d * size.size() + d] = 1;
    offset.push_back(-start[d]);
  }
  return apply(op::reindex, {{"size", size}, {"matrix", matrix}, {"offset", offset}}, x, fill);
}

std::vector<Value*> cat_by_position(const Decompose& d) {
  const Type& type = d.node.output()->type;
  const auto dim = static_cast<size_t>(dim_of(d.node, type.rank()));
  // Parts of sizes that vary may have a sum that does not.
  const bool is_known = std::ranges::all_of(
      d.node.inputs, [dim](const Value* each) { return each->type.shape[dim].is_constant(); });
  if (d.inputs.size() > policy::kMostConcatenatedInKernel || !is_known)
    throw TypeError("cat: many tensors, or of unknown size");
  std::vector<int64_t> start(type.shape.size());
  start[dim] = type.shape[dim].value();
  std::optional<Expression> joined;
  for (size_t i = d.inputs.size(); i-- > 0;) {
    const auto x = in(d, i);
    const int64_t end = start[dim];
    start[dim] -= x.shape()[dim].value();
    const auto part = cast(moved(x, type.shape, start, 0.0), type.dtype);
    const auto place = apply(op::position, {{"dim", static_cast<int64_t>(dim)}}, part);
    joined = joined ? apply(op::where, apply(op::lt, place, end), part, *joined) : part;
  }
  return {joined->value()};
}

void cat_gradient(Vjp& g) {
  const auto dy = dout(g);
  const int64_t dim = dim_of(g.node(), dy.rank());
  Dim start = 0;
  for (size_t i = 0; i < g.node().inputs.size(); ++i) {
    const auto x = in(g, i);
    const Dim length = x.shape()[static_cast<size_t>(dim)];
    if (g.needs(i))
      g.add(
          i,
          cast(apply(
                   op::narrow,
                   {{"dim", dim}, {"start", to_attribute(start)}, {"length", to_attribute(length)}},
                   dy),
               x.dtype()));
    start = start + length;
  }
}

std::vector<Type> infer_stack(const Infer& infer) {
  const DType dtype = joined_dtype(infer);
  Shape shape = infer.type(0).shape;
  for (size_t i = 1; i < infer.inputs.size(); ++i)
    if (infer.type(i).shape != shape)
      infer.fail(cat("shapes differ: ", infer.type(0), ", ", infer.type(i)));
  const int64_t rank = infer.type(0).rank() + 1;
  const int64_t dim = wrap_dim(infer, integer_attribute(infer.attributes, "dim"), rank);
  shape.insert(shape.begin() + dim, Dim(static_cast<int64_t>(infer.inputs.size())));
  return {Type::tensor(dtype, shape)};
}

void stack_gradient(Vjp& g) {
  const auto dy = dout(g);
  const int64_t dim = dim_of(g.node(), dy.rank());
  for (size_t i = 0; i < g.node().inputs.size(); ++i)
    if (g.needs(i))
      g.add(i, cast(apply(op::select, {{"dim", dim}, {"index", static_cast<int64_t>(i)}}, dy),
                    in(g, i).dtype()));
}

// ---- Repeating, flipping, padding --------------------------------------------------------------

Shape repeats_of(const Attributes& attributes) {
  return list_attribute(attributes, attributes.has("repeats") ? "repeats" : "dims");
}

std::vector<Type> infer_repeat(const Infer& infer) {
  const Shape& from = tensor_type(infer, 0).shape;
  Shape shape = repeats_of(infer.attributes);
  if (shape.size() < from.size()) infer.fail("fewer repeats than dimensions");
  for (const Dim& count : shape)
    if (count.lower_bound().value_or(-1) < 0) infer.fail(cat(count, " repeats"));
  const size_t extra = shape.size() - from.size();
  for (size_t i = extra; i < shape.size(); ++i) shape[i] = shape[i] * from[i - extra];
  return {Type::tensor(infer.type(0).dtype, shape)};
}

/// The gradient of repeat: sums over the copies, with each dimension as (copies, size).
void repeat_gradient(Vjp& g) {
  const auto x = in(g, 0), dy = dout(g);
  const Shape repeats = list_attribute(g.node().attributes, "repeats");
  const size_t extra = repeats.size() - x.shape().size();
  Shape unfolded;
  std::vector<int64_t> copies;
  for (size_t i = 0; i < repeats.size(); ++i) {
    copies.push_back(static_cast<int64_t>(unfolded.size()));
    unfolded.push_back(repeats[i]);
    if (i >= extra) unfolded.push_back(x.shape()[i - extra]);
  }
  if (copies.empty()) return g.add(0, dy);
  g.add(0, reshaped(sum_over(reshaped(dy, unfolded), copies, false), x.shape()));
}

/// The counts of tile: missing ones in front are 1.
Shape tile_counts(const Attributes& attributes, size_t rank) {
  Shape counts = list_attribute(attributes, "dims");
  while (counts.size() < rank) counts.insert(counts.begin(), Dim(1));
  return counts;
}

std::vector<Type> infer_flip(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  std::vector<int64_t> seen;
  for (const Dim& dim : list_attribute(infer.attributes, "dims")) {
    if (!dim.is_constant()) infer.fail("a dimension must be known");
    const int64_t wrapped = wrap_dim(infer, dim.value(), type.rank());
    if (std::find(seen.begin(), seen.end(), wrapped) != seen.end())
      infer.fail(cat("dimension ", wrapped, " appears twice"));
    seen.push_back(wrapped);
  }
  return {type};
}

void roll_gradient(Vjp& g) {
  Shape shifts = list_attribute(g.node().attributes, "shifts");
  for (Dim& shift : shifts) shift = 0 - shift;
  g.add(0, apply(op::roll, {{"shifts", shifts}, {"dims", *g.node().attributes.find("dims")}},
                 dout(g)));
}

std::vector<Type> infer_pad(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  const Shape pad = list_attribute(infer.attributes, "pad");
  if (pad.size() % 2 != 0 || pad.size() / 2 > type.shape.size())
    infer.fail(cat("padding of ", pad.size(), " numbers for ", type));
  Shape shape = type.shape;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    Dim& dim = shape[shape.size() - 1 - i];
    dim = dim + pad[2 * i] + pad[2 * i + 1];
    if (dim.lower_bound().value_or(-1) < 0) infer.fail(cat("the result would have size ", dim));
  }
  return {Type::tensor(type.dtype, shape)};
}

std::vector<Type> infer_user_pad(const Infer& infer) {
  if (text_attribute(infer.attributes, "mode") != "constant")
    infer.fail("a mode other than constant");
  return infer_pad(infer);
}

std::vector<Value*> decompose_pad(const Decompose& d) {
  const auto value = in(d, 1);
  const Attributes attributes{{"pad", list_attribute(d.node.attributes, "pad")}};
  if (value.is_none()) return {apply(op::constant_pad_nd, attributes, in(d, 0), 0)};
  return {apply(op::constant_pad_nd, attributes, in(d, 0), value)};
}

/// Padding as a choice by position. With negative padding only, it is a copied part of the tensor.
std::vector<Value*> pad_by_position(const Decompose& d) {
  const auto x = in(d, 0);
  const Shape pad = list_attribute(d.node.attributes, "pad");
  std::vector<int64_t> start(x.shape().size());
  bool has_border = false;
  for (size_t i = 0; i < pad.size(); ++i) {
    if (!pad[i].is_constant()) throw TypeError("constant_pad_nd: of unknown width");
    has_border |= pad[i].value() > 0;
    if (i % 2 == 0) start[start.size() - 1 - i / 2] = pad[i].value();
  }
  if (!has_border) throw TypeError("constant_pad_nd: a part of the tensor");
  return {moved(x, d.node.output()->type.shape, start, in(d, 1)).value()};
}

std::vector<Type> infer_triangle(const Infer& infer) {
  if (tensor_type(infer, 0).rank() < 2) infer.fail(cat("the triangle of ", infer.type(0)));
  return {infer.type(0)};
}

void triangle_gradient(Vjp& g) { g.add(0, apply(*g.node().op, g.node().attributes, dout(g))); }

}  // namespace

constinit const OpDef op::gather{
    .name = "gather",
    .doc = "Elements at positions along a dimension.",
    .schema = "(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    .aten = "gather",
    .python = "gather Tensor.gather",
    .layout = Layout::contiguous,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .access = Access::gathered,
    .infer = infer_gather,
    .vjp = gather_gradient,
};

constinit const OpDef op::scatter{
    .name = "scatter",
    .doc = "self with elements of src at positions along a dimension.",
    .schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .aten = "scatter.src",
    .python = "scatter Tensor.scatter",
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer =
        [](const Infer& infer) {
          tensor_type(infer, 2);
          return infer_scatter(infer);
        },
    .vjp = scatter_gradient,
};

constinit const OpDef op::scatter_value{
    .name = "scatter_value",
    .doc = "self with a number at positions along a dimension.",
    .schema = "(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    .aten = "scatter.value",
    .python = "scatter Tensor.scatter",
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_scatter,
    .vjp = scatter_gradient,
};

constinit const OpDef op::scatter_add{
    .name = "scatter_add",
    .doc = "self plus elements of src at positions along a dimension.",
    .schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .aten = "scatter_add",
    .python = "scatter_add Tensor.scatter_add",
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_scatter,
    .vjp =
        [](Vjp& g) {
          if (g.needs(0)) g.add(0, dout(g));
          if (g.needs(2)) g.add(2, apply(op::gather, along(g.node()), dout(g), in(g, 1)));
        },
};

constinit const OpDef op::index_select{
    .name = "index_select",
    .doc = "The parts at positions along a dimension.",
    .schema = "(Tensor self, int dim, Tensor index) -> Tensor",
    .aten = "index_select",
    .python = "index_select Tensor.index_select",
    .layout = Layout::contiguous,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .access = Access::selected,
    .infer = infer_index_select,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          if (dim_of(g.node(), x.rank()) == 0 && is_summed_by_rows(x.type()))
            return g.add(0, rows_added(x.shape(), dout(g), in(g, 1)));
          const auto index = reshaped(in(g, 1), {element_count(in(g, 1).shape())});
          g.add(0, apply(op::index_add, along(g.node()), zeros_of(in(g, 0)), index, dout(g)));
        },
};

constinit const OpDef op::index_add{
    .name = "index_add",
    .doc = "self plus alpha times the parts of source at positions along a dimension.",
    .schema = "(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    .aten = "index_add",
    .python = "index_add Tensor.index_add",
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_index_add,
    .vjp =
        [](Vjp& g) {
          if (g.needs(0)) g.add(0, dout(g));
          if (!g.needs(2)) return;
          const auto part = apply(op::index_select, along(g.node()), dout(g), in(g, 1));
          g.add(2, is_constant(g.in(3), 1) ? part : part * in(g, 3));
        },
};

constinit const OpDef op::take_along_dim{
    .name = "take_along_dim",
    .doc = "gather with NumPy's name.",
    .schema = "(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    .python = "take_along_dim Tensor.take_along_dim",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_take_along,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {apply(op::gather, along(d.node), in(d, 0), in(d, 1))};
    },
};

constinit const OpDef op::index{
    .name = "index",
    .doc = "Elements at positions that tensors of integers give for some dimensions.",
    .schema = "(Tensor self, Tensor?[] indices) -> Tensor",
    .aten = "index.Tensor",
    .python = "Tensor.index",  // the subscript with tensors; no attribute of that name exists
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .access = Access::subscripted,
    .infer = infer_index,
    .vjp = index_gradient,
    // Used for results that share memory with the base: all positions differ.
    .scatter = [](const Scatter& s) -> Value* {
      std::vector<Value*> inputs = s.view.inputs;
      inputs[0] = s.base;
      inputs.push_back(s.replacement);
      return s.builder.append(op::index_put, inputs)->output();
    },
};

constinit const OpDef op::nonzero_static{
    .name = "nonzero_static",
    .doc = "The positions of the first `size` elements that are not zero, one a row.",
    .schema = "(Tensor self, *, int size, int fill_value=-1) -> Tensor",
    .aten = "nonzero_static",
    .python = "nonzero_static Tensor.nonzero_static",
    .traits = Trait::pure | Trait::no_gradient,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      return {Type::tensor(
          DType::i64, {dim_attribute(infer.attributes, "size"), tensor_type(infer, 0).rank()})};
    },
};

constinit const OpDef op::index_put{
    .name = "index_put",
    .doc = "self with values at (or added to) positions that tensors of integers give.",
    .schema = "(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    .aten = "index_put",
    .python = "index_put Tensor.index_put",
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_index_put,
    .vjp = index_put_gradient,
};

constinit const OpDef op::cat{
    .name = "cat",
    .doc = "Tensors one after the other along a dimension.",
    .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
    .aten = "cat",
    .python = "cat concat concatenate",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .autocast = Autocast::widest,
    .access = Access::joined,
    .infer = infer_cat,
    .vjp = cat_gradient,
    .decompose = cat_by_position,
    .rows = for_rows::joined,
};

constinit const OpDef op::stack{
    .name = "stack",
    .doc = "Tensors of the same shape along a new dimension.",
    .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
    .aten = "stack",
    .python = "stack",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .autocast = Autocast::widest,
    .infer = infer_stack,
    .vjp = stack_gradient,
    .rows = for_rows::joined,
};

constinit const OpDef op::repeat{
    .name = "repeat",
    .doc = "Copies of a tensor side by side, a count for each dimension.",
    .schema = "(Tensor self, int[] repeats) -> Tensor",
    .aten = "repeat",
    .python = "Tensor.repeat",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_repeat,
    .vjp = repeat_gradient,
};

constinit const OpDef op::tile{
    .name = "tile",
    .doc = "repeat in which missing counts are 1.",
    .schema = "(Tensor self, int[] dims) -> Tensor",
    .python = "tile Tensor.tile",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      Shape shape = tile_counts(infer.attributes, type.shape.size());
      const size_t extra = shape.size() - type.shape.size();
      for (size_t i = extra; i < shape.size(); ++i) shape[i] = shape[i] * type.shape[i - extra];
      return {Type::tensor(type.dtype, shape)};
    },
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      const Shape counts = tile_counts(d.node.attributes, in(d, 0).shape().size());
      return {apply(op::repeat, {{"repeats", counts}}, in(d, 0))};
    },
};

constinit const OpDef op::flip{
    .name = "flip",
    .doc = "The order of elements reversed along dimensions.",
    .schema = "(Tensor self, int[] dims) -> Tensor",
    .aten = "flip",
    .python = "flip Tensor.flip",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .access = Access::reversed,
    .infer = infer_flip,
    .vjp = [](Vjp& g) { g.add(0, apply(op::flip, g.node().attributes, dout(g))); },
};

constinit const OpDef op::roll{
    .name = "roll",
    .doc = "Elements moved along dimensions; those that leave at the end come in at the start.",
    .schema = "(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    .aten = "roll",
    .python = "roll Tensor.roll",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      const size_t shifts = list_attribute(infer.attributes, "shifts").size();
      const Shape dims = list_attribute(infer.attributes, "dims");
      if (dims.empty() ? shifts != 1 : dims.size() != shifts)
        infer.fail(janus::cat(shifts, " shifts for ", dims.size(), " dimensions"));
      for (const Dim& dim : dims) {
        if (!dim.is_constant()) infer.fail("a dimension must be known");
        wrap_dim(infer, dim.value(), type.rank());
      }
      return {type};
    },
    .vjp = roll_gradient,
};

constinit const OpDef op::constant_pad_nd{
    .name = "constant_pad_nd",
    .doc = "A border of a number around the last dimensions; a negative width cuts.",
    .schema = "(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    .aten = "constant_pad_nd",
    .python = "constant_pad_nd",
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .access = Access::joined,
    .infer = infer_pad,
    .vjp =
        [](Vjp& g) {
          Shape pad = list_attribute(g.node().attributes, "pad");
          for (Dim& width : pad) width = 0 - width;
          g.add(0, apply(op::constant_pad_nd, {{"pad", pad}}, dout(g), 0));
        },
    .decompose = pad_by_position,
};

constinit const OpDef op::pad{
    .name = "pad",
    .doc = "A border around the last dimensions; only mode \"constant\".",
    .schema = "(Tensor input, int[] pad, str mode=\"constant\", float? value=None) -> Tensor",
    .python = "nn.functional.pad _C._nn.pad",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::nothing,
    .infer = infer_user_pad,
    .decompose = decompose_pad,
};

constinit const OpDef op::tril{
    .name = "tril",
    .doc = "The lower triangle of matrices, zero elsewhere.",
    .schema = "(Tensor self, int diagonal=0) -> Tensor",
    .aten = "tril",
    .python = "tril Tensor.tril",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_triangle,
    .vjp = triangle_gradient,
};

constinit const OpDef op::triu{
    .name = "triu",
    .doc = "The upper triangle of matrices, zero elsewhere.",
    .schema = "(Tensor self, int diagonal=0) -> Tensor",
    .aten = "triu",
    .python = "triu Tensor.triu",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = infer_triangle,
    .vjp = triangle_gradient,
};

constinit const OpDef op::one_hot{
    .name = "one_hot",
    .doc = "1 at each element's class along a new last dimension, 0 elsewhere.",
    .schema = "(Tensor self, int num_classes=-1) -> Tensor",
    .aten = "one_hot",
    .python = "nn.functional.one_hot _C._nn.one_hot",
    .traits = Trait::pure | Trait::no_gradient,
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      Shape shape = positions(infer, 0).shape;
      const int64_t classes = integer_attribute(infer.attributes, "num_classes");
      if (classes < 1) infer.fail("the number of classes depends on values");
      shape.push_back(classes);
      return {Type::tensor(DType::i64, shape)};
    },
};

constinit const OpDef op::pick{
    .name = "pick",
    .doc =
        "The element at an index along a dimension, which stays with size 1. The index is taken "
        "into range: whoever uses the operator sees to it that it is in range.",
    .schema = "(Tensor self, Tensor index, *, int dim) -> Tensor",
    .computed_by = ComputedBy::loops,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .combines = Combines::picked,
    .reduces = Reduces::one,
    .rounds = Rounds::at_the_end,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      Shape shape = type.shape;
      if (shape.empty()) infer.fail("of a number");
      const int64_t dim = wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
      shape[static_cast<size_t>(dim)] = 1;
      if (!(tensor_type(infer, 1) == Type::tensor(DType::i64, shape)))
        infer.fail(janus::cat(type, ", index ", infer.type(1)));
      return {Type::tensor(type.dtype, shape)};
    },
    .vjp =
        [](Vjp& g) {
          const Attributes dim{{"dim", *g.node().attributes.find("dim")}};
          const auto here = apply(op::eq, apply(op::position, dim, in(g, 0)), in(g, 1));
          g.add(0, apply(op::where, here, dout(g), 0.0));
        },
    .rows = for_rows::along_dim_of_all,
};

constinit const OpDef op::position{
    .name = "position",
    .doc =
        "Where an element stands along a dimension, for each of a tensor. No memory in kernels, "
        "which know where they are.",
    .schema = "(Tensor self, *, int dim) -> Tensor",
    .traits = Trait::pure | Trait::elementwise | Trait::no_gradient,
    .computed_by = ComputedBy::loops,
    .raises = Raises::never_for_floats,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
      return {Type::tensor(DType::i64, type.shape)};
    },
    .scalar =
        [](ScalarCode& code) {
          return code.call("position", std::span<const ScalarCode::Scalar>());
        },
    .rows = for_rows::along_dim,
};

}  // namespace janus
