#include "ops/expression.h"

#include <algorithm>
#include <numeric>

#include "ops/attributes.h"
#include "ops/promotion.h"
#include "ops/shape_rules.h"

namespace janus::ops {

using namespace graph;

namespace {

Value* constant_from(Builder& builder, const AttributeValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return builder.constant(*number);
  if (const auto* number = std::get_if<int64_t>(&value)) return builder.constant(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return builder.constant(*flag);
  return builder.none();
}

Builder& builder_of(std::span<const Expression> operands) {
  for (const Expression& operand : operands)
    if (operand.builder() != nullptr) return *operand.builder();
  throw InternalError("expression: every operand is a literal");
}

bool is_number(const Expression& x) { return x.value() == nullptr || x.type().is_number(); }

Expression binary(const OpDef& of_tensors, const OpDef& of_numbers, const Expression& a,
                  const Expression& b) {
  return apply(is_number(a) && is_number(b) ? of_numbers : of_tensors, a, b);
}

Shape to_list(std::span<const int64_t> dims) { return Shape(dims.begin(), dims.end()); }

}  // namespace

Value* Expression::in(Builder& builder) const {
  return value_ != nullptr ? value_ : constant_from(builder, literal_);
}

Node* apply_node(const OpDef& op, std::span<const Expression> operands, Attributes attributes) {
  Builder& builder = builder_of(operands);
  std::vector<Value*> inputs;
  for (const Expression& operand : operands) inputs.push_back(operand.in(builder));
  size_t position = 0;
  for (const Parameter& parameter : op.signature().parameters) {
    if (!parameter.is_operand() || parameter.kind == Parameter::Kind::tensor_list) continue;
    if (position++ < inputs.size()) continue;
    inputs.push_back(constant_from(builder, parameter.default_value.value_or(None{})));
  }
  return builder.append(op, inputs, std::move(attributes));
}

Expression operator+(const Expression& a, const Expression& b) {
  return binary(op::add, op::scalar_add, a, b);
}
Expression operator-(const Expression& a, const Expression& b) {
  return binary(op::sub, op::scalar_sub, a, b);
}
Expression operator*(const Expression& a, const Expression& b) {
  return binary(op::mul, op::scalar_mul, a, b);
}
Expression operator/(const Expression& a, const Expression& b) {
  return binary(op::div, op::scalar_truediv, a, b);
}
Expression operator-(const Expression& a) {
  return apply(is_number(a) ? op::scalar_neg : op::neg, a);
}

Expression reshaped(const Expression& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return apply(op::reshape, {{"shape", shape}}, x);
}

Expression expanded(const Expression& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return apply(op::expand, {{"size", shape}}, x);
}

Expression unsqueezed(const Expression& x, int64_t dim) {
  return apply(op::unsqueeze, {{"dim", dim}}, x);
}

Expression squeezed(const Expression& x, int64_t dim) {
  return apply(op::squeeze, {{"dim", Shape{Dim(dim)}}}, x);
}

Expression transposed(const Expression& x, int64_t dim0, int64_t dim1) {
  return apply(op::transpose, {{"dim0", dim0}, {"dim1", dim1}}, x);
}

Expression permuted(const Expression& x, std::span<const int64_t> order) {
  return apply(op::permute, {{"dims", to_list(order)}}, x);
}

Expression sliced(const Expression& x, int64_t dim, const Dim& start, const Dim& stop) {
  return apply(op::slice,
               {{"dim", dim}, {"start", to_attribute(start)}, {"end", to_attribute(stop)}}, x);
}

Expression restored(const Expression& reduced, std::span<const int64_t> dims) {
  Expression result = reduced;
  for (const int64_t dim : dims) result = unsqueezed(result, dim);
  return result;
}

Expression along(const Expression& vector, int64_t dim, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(dim)] = vector.shape().front();
  return reshaped(vector, shape);
}

Expression sum_over(const Expression& x, std::span<const int64_t> dims, bool keep) {
  return apply(op::sum, {{"dim", to_list(dims)}, {"keepdim", keep}}, x);
}

Expression mean_over(const Expression& x, std::span<const int64_t> dims, bool keep) {
  return apply(op::mean, {{"dim", to_list(dims)}, {"keepdim", keep}}, x);
}

Expression sum_all(const Expression& x) { return apply(op::sum, x); }

Expression sum_to(const Expression& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  TORCHJANUS_CHECK(x.shape().size() >= shape.size(), "sum_to: ", x.type(),
                   " has too few dimensions");
  const size_t leading = x.shape().size() - shape.size();
  std::vector<int64_t> dims(leading);
  std::iota(dims.begin(), dims.end(), 0);
  for (size_t i = 0; i < shape.size(); ++i)
    if (!(shape[i] == x.shape()[leading + i])) dims.push_back(static_cast<int64_t>(leading + i));
  const bool keep = leading == 0;
  return reshaped(sum_over(x, dims, keep), shape);
}

Expression put_at(const Expression& x, const Expression& index, const Shape& shape, int64_t dim) {
  const auto chosen = expanded(index, shape);
  const auto here = apply(op::eq, apply(op::position, {{"dim", dim}}, chosen), chosen);
  return apply(op::where, here, x, 0.0);
}

Expression cast(const Expression& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return apply(op::to, {{"dtype", dtype}}, x);
}

Expression widened(const Expression& x) { return cast(x, graph::widened(x.dtype())); }

Expression zeros(Builder& builder, const Type& type) {
  return Expression(builder, op::zeros(builder, {}, {{"size", type.shape}, {"dtype", type.dtype}}));
}

Expression number(Builder& builder, const Dim& dim) {
  if (dim.is_constant()) return Expression(builder, builder.constant(dim.value()));
  return Expression(builder, op::size(builder, {}, {{"of", dim}}));
}

}  // namespace janus::ops
