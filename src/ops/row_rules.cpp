// See row_rules.h. A size that depends on the number of rows stands nowhere in attributes, so that
// operators are bound once for any number: it is left to `reshape` and `expand` as -1.
#include "ops/row_rules.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "graph/constant.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/shape_rules.h"

namespace janus::ops::for_rows {

using graph::Builder;
using graph::Dim;
using graph::DType;
using graph::Node;
using graph::Shape;
using graph::Trait;
using graph::Type;
using graph::Value;

namespace {

/// A node at hand, and what stands for its operands.
struct Rows : graph::Rows {
  Rows(const graph::Rows& rows) : graph::Rows(rows) {}  // NOLINT

  Expression in(size_t index) const { return {builder, inputs[index]}; }
  const Type& type(size_t input) const { return node.inputs[input]->type; }
  const Type& result() const { return node.output()->type; }
  bool only(std::initializer_list<size_t> which) const {
    for (size_t i = 0; i < stacked.size(); ++i)
      if (stacked[i] != (std::find(which.begin(), which.end(), i) != which.end())) return false;
    return true;
  }
  int64_t integer(std::string_view name) const {
    return node.attributes.get_or<int64_t>(name, std::numeric_limits<int64_t>::min());
  }
};

/// A row of each in `shape`.
Expression each_in(const Expression& x, const Shape& shape) {
  Shape whole = shape;
  whole.insert(whole.begin(), Dim(-1));
  return apply(op::reshape, {{"shape", std::move(whole)}}, x);
}

/// With as many dimensions of size 1 behind the first as it takes for rows of `rank`.
Expression each_of_rank(const Expression& x, int64_t rank) {
  if (x.rank() == rank + 1) return x;
  Shape shape(x.shape().begin() + 1, x.shape().end());
  shape.insert(shape.begin(), static_cast<size_t>(rank + 1 - x.rank()), Dim(1));
  return each_in(x, shape);
}

/// The node's operator on other operands.
Results same_operator(const Rows& rows, std::span<Value* const> inputs,
                      graph::Attributes attributes) {
  return rows.builder.append(*rows.node.op, inputs, std::move(attributes))->outputs;
}

// ---- elementwise ------------------------------------------------------------------------------

/// The element type in which a number meets tensors, if it is that of all of them.
std::optional<DType> common_dtype(const Node& node) {
  std::optional<DType> common;
  for (const Value* input : node.inputs) {
    if (!input->type.is_tensor()) continue;
    if (common && *common != input->type.dtype) return std::nullopt;
    common = input->type.dtype;
  }
  return common;
}

/// A number of each row becomes a tensor: of the dtype that the number would have been taken as.
std::optional<Expression> number_of_each(const Rows& rows, size_t index) {
  const auto dtype = common_dtype(rows.node);
  const bool exact = dtype == DType::f32 || dtype == DType::f64 ||
                     (dtype == DType::i64 && rows.type(index).kind == Type::Kind::i64);
  if (index > 1 || !exact || rows.type(index).kind == Type::Kind::boolean) return std::nullopt;
  return ops::cast(rows.in(index), *dtype);
}

}  // namespace

Results elementwise(const graph::Rows& given) {
  const Rows rows(given);
  if (rows.node.attributes.has("dim")) return {};
  const int64_t rank = rows.result().rank();
  std::vector<Value*> inputs;
  for (size_t i = 0; i < rows.inputs.size(); ++i) {
    if (!rows.stacked[i]) {
      inputs.push_back(rows.inputs[i]);
    } else if (rows.type(i).is_tensor()) {
      inputs.push_back(each_of_rank(rows.in(i), rank));
    } else {
      const auto number = number_of_each(rows, i);
      if (!number) return {};
      inputs.push_back(each_of_rank(*number, rank));
    }
  }
  return same_operator(rows, inputs, rows.node.attributes);
}

// ---- other shapes -----------------------------------------------------------------------------

Results same_elements(const graph::Rows& given) {
  const Rows rows(given);
  return {each_in(rows.in(0), rows.result().shape).value()};
}

Results identity(const graph::Rows& given) { return {given.inputs[0]}; }

Results expand(const graph::Rows& given) {
  const Rows rows(given);
  Shape size = rows.result().shape;
  size.insert(size.begin(), Dim(-1));
  return {
      apply(op::expand, {{"size", std::move(size)}}, each_of_rank(rows.in(0), rows.result().rank()))
          .value()};
}

namespace {

/// Attributes that name dimensions, moved behind the first.
graph::Attributes moved(const Rows& rows, std::initializer_list<std::string_view> names,
                        int64_t rank) {
  graph::Attributes attributes = rows.node.attributes;
  for (const std::string_view name : names)
    attributes.set(std::string(name), ops::wrap_dim(rows.integer(name), rank) + 1);
  return attributes;
}

}  // namespace

Results along_dim(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.stacked[0] || rows.type(0).rank() == 0) return {};
  return same_operator(rows, rows.inputs, moved(rows, {"dim"}, rows.type(0).rank()));
}

Results along_dim_of_all(const graph::Rows& given) {
  const Rows rows(given);
  if (std::find(rows.stacked.begin(), rows.stacked.begin() + 2, false) != rows.stacked.begin() + 2)
    return {};
  return along_dim(rows);
}

Results transpose(const graph::Rows& given) {
  const Rows rows(given);
  if (rows.type(0).rank() < 2) return {};
  return same_operator(rows, rows.inputs, moved(rows, {"dim0", "dim1"}, rows.type(0).rank()));
}

Results permute(const graph::Rows& given) {
  const Rows rows(given);
  Shape dims = {Dim(0)};
  for (const Dim& dim : rows.node.attributes.get<Shape>("dims"))
    dims.emplace_back(ops::wrap_dim(dim.value(), rows.type(0).rank()) + 1);
  return {apply(op::permute, {{"dims", std::move(dims)}}, rows.in(0)).value()};
}

Results joined(const graph::Rows& given) {
  const Rows rows(given);
  if (std::find(rows.stacked.begin(), rows.stacked.end(), false) != rows.stacked.end()) return {};
  const int64_t rank = rows.result().rank();
  if (rows.node.op == &op::cat)
    for (size_t i = 0; i < rows.inputs.size(); ++i)
      if (rows.type(i).rank() != rank) return {};
  return same_operator(rows, rows.inputs, moved(rows, {"dim"}, rank));
}

Results slice_backward(const graph::Rows& given) {
  const Rows rows(given);
  if (rows.integer("step") != 1) return {};
  const Shape& sizes = rows.result().shape;
  const int64_t rank = rows.result().rank(), dim = ops::wrap_dim(rows.integer("dim"), rank);
  const Dim& size = sizes[static_cast<size_t>(dim)];
  const Dim& length = rows.type(0).shape[static_cast<size_t>(dim)];
  const int64_t start = rows.integer("start");
  if (!size.is_constant() || !length.is_constant() || start < 0 ||
      start + length.value() > size.value())
    return {};
  Shape pad(static_cast<size_t>(2 * (rank - dim)), Dim(0));
  pad[pad.size() - 2] = Dim(start);
  pad[pad.size() - 1] = Dim(size.value() - start - length.value());
  return {apply(op::constant_pad_nd, {{"pad", std::move(pad)}}, rows.in(0)).value()};
}

Results reduced(const graph::Rows& given) {
  const Rows rows(given);
  const int64_t rank = rows.type(0).rank();
  if (rank == 0) return {};
  Shape dims;
  for (const int64_t dim : ops::reduced_dims(rows.node.attributes, "dim", rank))
    dims.emplace_back(dim + 1);
  graph::Attributes attributes = rows.node.attributes;
  attributes.set("dim", std::move(dims));
  return same_operator(rows, rows.inputs, std::move(attributes));
}

Results full(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.only({0})) return {};
  Expression each = ops::cast(rows.in(0), rows.result().dtype);
  const Shape& shape = rows.result().shape;
  if (shape.empty()) return {each.value()};
  Shape size = shape;
  size.insert(size.begin(), Dim(-1));
  each = each_of_rank(each, rows.result().rank());
  return {apply(op::expand, {{"size", std::move(size)}}, each).value()};
}

// ---- products ---------------------------------------------------------------------------------

Results linear(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.only({0})) return {};
  return same_operator(rows, rows.inputs, rows.node.attributes);
}

Results mm(const graph::Rows& given) {
  const Rows rows(given);
  const Shape& shape = rows.result().shape;
  if (rows.only({0})) {
    const Expression left =
        apply(op::reshape, {{"shape", Shape{Dim(-1), rows.type(0).shape[1]}}}, rows.in(0));
    return {each_in(apply(op::mm, left, rows.in(1)), shape).value()};
  }
  if (rows.only({0, 1})) return {apply(op::bmm, rows.in(0), rows.in(1)).value()};
  return {};
}

Results mv(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.only({1})) return {};
  return {apply(op::mm, rows.in(1), ops::transposed(rows.in(0), 0, 1)).value()};
}

// ---- rows of tensors --------------------------------------------------------------------------

namespace {

/// Python's positions of each, counted from the beginning.
Expression positions(const Expression& given, const Expression& size) {
  const Expression from_end = given + size;
  return apply(op::where, apply(op::lt, given, Expression(0)), from_end, given);
}

std::optional<Expression> positions(const Rows& rows, size_t index, const Dim& size) {
  if (!rows.stacked[index] || rows.type(index).kind != Type::Kind::i64) return std::nullopt;
  return positions(rows.in(index), ops::number(rows.builder, size));
}

}  // namespace

Results row(const graph::Rows& given) {
  const Rows rows(given);
  const auto index = positions(rows, 1, rows.type(0).shape[0]);
  if (!index) return {};
  if (!rows.stacked[0])
    return {apply(op::index_select, {{"dim", int64_t{0}}}, rows.in(0), *index).value()};
  if (rows.type(0).rank() != 1) return {};
  const Expression found =
      apply(op::gather, {{"dim", int64_t{1}}}, rows.in(0), each_in(*index, {Dim(1)}));
  return {each_in(found, {}).value()};
}

namespace {

/// True where dimension 1 of rows of `rank` has the position of each.
Expression at_position(const Rows& rows, const Expression& index, int64_t size, int64_t rank) {
  Value* count = rows.builder.constant(size);
  const Expression all(rows.builder,
                       rows.builder.append(op::arange, {count}, {{"dtype", DType::i64}})->output());
  return apply(op::eq, ops::along(all, 0, rank), each_of_rank(index, rank));
}

/// `value` there, zeros elsewhere.
Expression placed(const Expression& where, const Expression& value) {
  return apply(op::where, where, value, 0.0);
}

}  // namespace

Results row_backward(const graph::Rows& given) {
  const Rows rows(given);
  const Dim size(rows.integer("size"));
  const auto index = positions(rows, 1, size);
  if (!index || !rows.stacked[0]) return {};
  const int64_t rank = rows.result().rank();
  Shape row = rows.type(0).shape;
  row.insert(row.begin(), Dim(1));
  return {placed(at_position(rows, *index, size.value(), rank), each_in(rows.in(0), row)).value()};
}

Results embedding(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.only({1})) return {};
  return same_operator(rows, rows.inputs, rows.node.attributes);
}

// ---- losses -----------------------------------------------------------------------------------

namespace {

/// Of a single prediction: what it says of the right answer.
struct Prediction {
  int64_t classes = 0;
  bool is_mean = false;
  Expression valid, target;  ///< whether the answer counts; the answer, or 0 where it does not

  static std::optional<Prediction> of(const Rows& rows, size_t input) {
    const Type& type = rows.type(input);
    const bool single = type.rank() == 1 || (type.rank() == 2 && type.shape[0].is(1));
    const int64_t reduction = rows.integer("reduction");
    if (!single || !type.shape.back().is_constant() || !rows.type(input + 2).is_none() ||
        !rows.stacked[input] || !rows.stacked[input + 1] || (reduction != 1 && reduction != 2))
      return std::nullopt;
    const Expression target = each_in(rows.in(input + 1), {});
    const Expression valid =
        apply(op::ne, target, Expression(rows.node.attributes.get<int64_t>("ignore_index")));
    const Expression none = target * 0;
    return Prediction{type.shape.back().value(), reduction == 1, valid,
                      apply(op::where, valid, target, none)};
  }
};

}  // namespace

Results nll_loss_forward(const graph::Rows& given) {
  const Rows rows(given);
  const auto prediction = Prediction::of(rows, 0);
  if (!prediction) return {};
  const DType dtype = rows.type(0).dtype;
  const Expression logarithms = each_in(rows.in(0), {Dim(prediction->classes)});
  const Expression said = each_in(
      apply(op::gather, {{"dim", int64_t{1}}}, logarithms, each_in(prediction->target, {Dim(1)})),
      {});
  const double without = prediction->is_mean ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  return {apply(op::where, prediction->valid, -said, without).value(),
          ops::cast(prediction->valid, dtype).value()};
}

Results nll_loss_backward(const graph::Rows& given) {
  const Rows rows(given);
  const auto prediction = Prediction::of(rows, 1);
  if (!prediction || !rows.stacked[0] || rows.type(0).rank() != 0) return {};
  const Expression gradient = placed(prediction->valid, -rows.in(0));
  const Expression there = at_position(rows, prediction->target, prediction->classes, 1);
  return {each_in(placed(there, each_in(gradient, {Dim(1)})), rows.result().shape).value()};
}

Results count_classes(const graph::Rows& given) {
  const Rows rows(given);
  rows.builder.append(op::count_classes, {rows.inputs[0]}, rows.node.attributes);
  const Expression counted = apply(op::ne, rows.in(0), Expression(rows.integer("ignore_index")));
  std::vector<int64_t> dims(static_cast<size_t>(rows.type(0).rank()));
  std::iota(dims.begin(), dims.end(), 1);
  const Expression numbers = ops::cast(counted, DType::i64);
  return {(dims.empty() ? numbers : ops::sum_over(numbers, dims, false)).value()};
}

// ---- sums -------------------------------------------------------------------------------------

namespace {

bool is_one(const Node& node, size_t input) {
  return graph::constant_number(node.inputs[input]) == 1;
}

bool keeps_type(const Node& node) { return node.inputs[0]->type == node.output()->type; }

}  // namespace

bool adds_alike(const Node& node) {
  return keeps_type(node) && node.inputs[1]->type == node.inputs[0]->type && is_one(node, 2);
}

bool adds_product(const Node& node) {
  return keeps_type(node) && is_one(node, 3) && is_one(node, 4);
}

bool adds_always(const Node&) { return true; }

Value* sum(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.only({1})) return nullptr;
  const int64_t first[] = {0};
  return (rows.in(0) + ops::sum_over(rows.in(1), first, false)).value();
}

Value* sum_of_products(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.only({1, 2})) return nullptr;
  const Shape &left = rows.type(1).shape, &right = rows.type(2).shape;
  const Expression columns =
      apply(op::reshape, {{"shape", Shape{Dim(-1), left[0]}}}, ops::transposed(rows.in(1), 1, 2));
  const Expression others = apply(op::reshape, {{"shape", Shape{Dim(-1), right[1]}}}, rows.in(2));
  return apply(op::addmm, rows.in(0), ops::transposed(columns, 0, 1), others, 1, 1).value();
}

Value* sum_in_rows(const graph::Rows& given) {
  const Rows rows(given);
  if (!rows.only({1, 2})) return nullptr;
  const auto index = positions(rows, 2, rows.type(0).shape[0]);
  if (!index) return nullptr;
  return apply(op::index_add, {{"dim", int64_t{0}}}, rows.in(0), *index, rows.in(1), 1).value();
}

}  // namespace janus::ops::for_rows
