// Lets gradient rules and decompositions read like algebra:
//
//   const auto y = out(g), dy = dout(g);
//   g.add(0, dy * (1 - y * y));
//
// An Expression is a value with the builder that takes the nodes made from it, or a literal number,
// which becomes a constant when it meets a value. Any operator can be applied:
// `apply(op::exp, x)`, `apply(op::sum, {{"dim", Shape{0}}}, x)`. Missing operands at the end become
// None, missing attributes the signature's defaults.
#pragma once

#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "graph/builder.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::ops {

class Expression {
 public:
  Expression(graph::Builder& builder, graph::Value* value) : builder_(&builder), value_(value) {}
  Expression(double literal) : literal_(literal) {}                       // NOLINT
  Expression(int64_t literal) : literal_(literal) {}                      // NOLINT
  Expression(int literal) : Expression(static_cast<int64_t>(literal)) {}  // NOLINT

  operator graph::Value*() const { return value_; }  // NOLINT: it is a value
  graph::Value* value() const { return value_; }
  graph::Builder* builder() const { return builder_; }
  const graph::Type& type() const { return value_->type; }
  const graph::Shape& shape() const { return value_->type.shape; }
  graph::DType dtype() const { return value_->type.dtype; }
  int64_t rank() const { return value_->type.rank(); }
  bool is_none() const { return value_ != nullptr && value_->type.is_none(); }

  /// The value, with a literal made a constant in `builder`.
  graph::Value* in(graph::Builder& builder) const;

 private:
  graph::Builder* builder_ = nullptr;
  graph::Value* value_ = nullptr;
  graph::AttributeValue literal_;
};

/// All results of an operator. At least one operand must be a value (not a literal).
graph::Node* apply_node(const graph::OpDef& op, std::span<const Expression> operands,
                        graph::Attributes attributes = {});

/// The first result of an operator.
template <class... Operands>
Expression apply(const graph::OpDef& op, graph::Attributes attributes, Expression first,
                 const Operands&... rest) {
  const Expression operands[] = {first, Expression(rest)...};
  graph::Node* node = apply_node(op, operands, std::move(attributes));
  graph::Builder* builder = nullptr;
  for (const Expression& operand : operands)
    if (operand.builder() != nullptr) builder = operand.builder();
  return Expression(*builder, node->output());
}
template <class... Operands>
Expression apply(const graph::OpDef& op, Expression first, const Operands&... rest) {
  return apply(op, graph::Attributes{}, first, rest...);
}
/// All results of an operator as a list.
template <class... Operands>
std::vector<Expression> apply_all(const graph::OpDef& op, graph::Attributes attributes,
                                  Expression first, const Operands&... rest) {
  const Expression operands[] = {first, Expression(rest)...};
  graph::Node* node = apply_node(op, operands, std::move(attributes));
  std::vector<Expression> results;
  for (graph::Value* output : node->outputs) results.emplace_back(*first.builder(), output);
  return results;
}

// Arithmetic of tensors and numbers; of two numbers, Python's.
Expression operator+(const Expression& a, const Expression& b);
Expression operator-(const Expression& a, const Expression& b);
Expression operator*(const Expression& a, const Expression& b);
Expression operator/(const Expression& a, const Expression& b);
Expression operator-(const Expression& a);

// A literal on one side. Without these overloads, pointer arithmetic would compete.
template <class T>
concept Literal = std::is_arithmetic_v<T>;
#define TORCHJANUS_LITERAL_OPERATOR(symbol)              \
  template <Literal T>                                   \
  Expression operator symbol(const Expression& a, T b) { \
    return a symbol Expression(b);                       \
  }                                                      \
  template <Literal T>                                   \
  Expression operator symbol(T a, const Expression& b) { \
    return Expression(a) symbol b;                       \
  }
TORCHJANUS_LITERAL_OPERATOR(+)
TORCHJANUS_LITERAL_OPERATOR(-)
TORCHJANUS_LITERAL_OPERATOR(*)
TORCHJANUS_LITERAL_OPERATOR(/)
#undef TORCHJANUS_LITERAL_OPERATOR

// The operands and results of gradient rules and decompositions.
inline Expression in(const graph::Vjp& g, size_t index) {
  return Expression(const_cast<graph::Vjp&>(g).builder(), g.in(index));
}
inline Expression out(const graph::Vjp& g, size_t index = 0) {
  return Expression(const_cast<graph::Vjp&>(g).builder(), g.out(index));
}
inline Expression dout(const graph::Vjp& g, size_t index = 0) {
  return Expression(const_cast<graph::Vjp&>(g).builder(), g.dout(index));
}
inline Expression in(const graph::Decompose& d, size_t index) {
  return Expression(d.builder, d.inputs[index]);
}

// Shapes.
Expression reshaped(const Expression& x, const graph::Shape& shape);
Expression expanded(const Expression& x, const graph::Shape& shape);
Expression unsqueezed(const Expression& x, int64_t dim);
Expression squeezed(const Expression& x, int64_t dim);
Expression transposed(const Expression& x, int64_t dim0, int64_t dim1);
Expression permuted(const Expression& x, std::span<const int64_t> order);
/// Elements start, ..., stop - 1 of dimension `dim`.
Expression sliced(const Expression& x, int64_t dim, const graph::Dim& start,
                  const graph::Dim& stop);
/// With a dimension of size 1 inserted at each of `dims` (sorted), which a reduction had removed.
Expression restored(const Expression& reduced, std::span<const int64_t> dims);
/// A vector as a tensor that broadcasts along dimension `dim` of tensors of `rank`.
Expression along(const Expression& vector, int64_t dim, int64_t rank);

// Reductions over `dims` (sorted, not empty).
Expression sum_over(const Expression& x, std::span<const int64_t> dims, bool keep);
Expression mean_over(const Expression& x, std::span<const int64_t> dims, bool keep);
Expression sum_all(const Expression& x);
/// The sum over the dimensions along which a tensor of `shape` was broadcast to x's.
Expression sum_to(const Expression& x, const graph::Shape& shape);

/// A tensor of that shape. Each row along `dim` has one element of x, at its index, and zeros. It
/// is a choice by position, so kernels store nothing for it.
Expression put_at(const Expression& x, const Expression& index, const graph::Shape& shape,
                  int64_t dim);

Expression cast(const Expression& x, graph::DType dtype);
/// x in the precision that eager computes in: half precision as f32, everything else as it is.
Expression widened(const Expression& x);
/// x rounded to `dtype`, in its own dtype.
inline Expression rounded(const Expression& x, graph::DType dtype) {
  return cast(cast(x, dtype), x.dtype());
}
/// Zeros of that type.
Expression zeros(graph::Builder& builder, const graph::Type& type);
inline Expression zeros_of(const Expression& like) { return zeros(*like.builder(), like.type()); }
/// A dimension as a number of the graph.
Expression number(graph::Builder& builder, const graph::Dim& dim);

/// Adds a gradient of a broadcasting operator: summed to the input's shape, cast to its dtype.
/// `make` is called only if the input needs it.
template <class Make>
void add_gradient(graph::Vjp& g, size_t input, Make&& make) {
  if (!g.needs(input)) return;
  const Expression gradient = make();
  const graph::Type& type = g.in(input)->type;
  g.add(input, cast(sum_to(gradient, type.shape), type.dtype));
}

}  // namespace janus::ops
