// Products of matrices and vectors. `matmul` decomposes by the ranks of its operands, as in torch.
// `linear` stays whole, since the executor has several implementations of it.
#include <array>

#include "ops/expression.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait product = Trait::pure | Trait::product;

/// The dtype of the first `count` operands, which must agree and not be boolean.
DType common_dtype(const Infer& infer, size_t count) {
  const DType dtype = tensor_type(infer, 0).dtype;
  for (size_t i = 1; i < count; ++i)
    if (tensor_type(infer, i).dtype != dtype)
      infer.fail(cat("operands differ in dtype: ", infer.type(0), ", ", infer.type(i)));
  if (dtype == DType::b1) infer.fail("boolean operands");
  return dtype;
}

Expression swapped(const Expression& x) { return transposed(x, x.rank() - 2, x.rank() - 1); }

/// The shape of mat1 @ mat2 for matrices at operands `first` and `first + 1`, batched or not.
Shape product_shape(const Infer& infer, size_t first, int64_t rank) {
  const Shape& a = tensor_of_rank(infer, first, rank).shape;
  const Shape& b = tensor_of_rank(infer, first + 1, rank).shape;
  const size_t row = static_cast<size_t>(rank) - 2;
  if (rank == 3) require_equal(infer, a[0], b[0], "batch sizes differ");
  require_equal(infer, a[row + 1], b[row], "inner dimensions differ");
  Shape shape = a;
  shape[row + 1] = b[row + 1];
  return shape;
}

template <int64_t rank>
std::vector<Type> infer_product(const Infer& infer) {
  const DType dtype = common_dtype(infer, 2);
  return {Type::tensor(dtype, product_shape(infer, 0, rank))};
}

template <int64_t rank>
std::vector<Type> infer_added_product(const Infer& infer) {
  const DType dtype = common_dtype(infer, 3);
  if (!is_floating(dtype)) infer.fail("integer operands");
  const Shape shape = product_shape(infer, 1, rank);
  if (broadcast(infer, tensor_type(infer, 0).shape, shape) != shape)
    infer.fail(cat(infer.type(0), " does not broadcast to the product"));
  return {Type::tensor(dtype, shape)};
}

void product_gradient(Vjp& g, const OpDef& product) {
  const auto dy = dout(g);
  if (g.needs(0)) g.add(0, apply(product, dy, swapped(in(g, 1))));
  if (g.needs(1)) g.add(1, apply(product, swapped(in(g, 0)), dy));
}

Expression outer_product(const Expression& a, const Expression& b) { return unsqueezed(a, 1) * b; }

/// x times the factor, without a multiplication by one.
Expression times(const Expression& x, const Expression& factor) {
  return is_constant(factor, 1) ? x : x * factor;
}

/// The gradient of beta * self + alpha * a @ b.
void added_product_gradient(Vjp& g, const OpDef& product) {
  const auto dy = dout(g), beta = in(g, 3), alpha = in(g, 4);
  add_gradient(g, 0, [&] { return times(dy, beta); });
  if (g.needs(1)) g.add(1, times(apply(product, dy, swapped(in(g, 2))), alpha));
  if (g.needs(2)) g.add(2, times(apply(product, swapped(in(g, 1)), dy), alpha));
}

Shape leading(const Shape& shape, size_t without) {
  return Shape(shape.begin(), shape.end() - static_cast<ptrdiff_t>(without));
}

Shape with(Shape shape, std::initializer_list<Dim> last) {
  shape.insert(shape.end(), last);
  return shape;
}

std::vector<Type> infer_matmul(const Infer& infer) {
  const DType dtype = common_dtype(infer, 2);
  const Shape& a = infer.type(0).shape;
  const Shape& b = infer.type(1).shape;
  if (a.empty() || b.empty()) infer.fail("both operands must have at least one dimension");
  const size_t rank_b = b.size();
  require_equal(infer, a.back(), rank_b == 1 ? b[0] : b[rank_b - 2], "inner dimensions differ");
  Shape shape = broadcast(infer, leading(a, std::min<size_t>(a.size(), 2)),
                          leading(b, std::min<size_t>(rank_b, 2)));
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (rank_b > 1) shape.push_back(b.back());
  return {Type::tensor(dtype, shape)};
}

/// The product of operands with at least two dimensions: their batch dimensions are broadcast and
/// become one.
Expression batched_product(const Expression& a, const Expression& b, const Shape& result) {
  const Shape batch = leading(result, 2);
  const Dim rows = a.shape()[a.shape().size() - 2], inner = a.shape().back();
  const Dim columns = b.shape().back(), count = element_count(batch);
  const auto flat_a = reshaped(expanded(a, with(batch, {rows, inner})), {count, rows, inner});
  const auto flat_b = reshaped(expanded(b, with(batch, {inner, columns})), {count, inner, columns});
  return reshaped(apply(op::bmm, flat_a, flat_b), result);
}

std::vector<Value*> decompose_matmul(const Decompose& d) {
  const auto a = in(d, 0), b = in(d, 1);
  const Shape& result = d.node.output()->type.shape;
  if (a.rank() == 1 && b.rank() == 1) return {apply(op::dot, a, b)};
  if (a.rank() == 2 && b.rank() == 1) return {apply(op::mv, a, b)};
  if (a.rank() == 2 && b.rank() == 2) return {apply(op::mm, a, b)};
  if (a.rank() == 1 && b.rank() == 2) return {squeezed(apply(op::mm, unsqueezed(a, 0), b), 0)};
  if (a.rank() >= 3 && b.rank() <= 2) {  // one product with all rows
    const auto rows = reshaped(a, {element_count(leading(a.shape(), 1)), a.shape().back()});
    return {reshaped(apply(b.rank() == 1 ? op::mv : op::mm, rows, b), result)};
  }
  const auto matrix_a = a.rank() == 1 ? unsqueezed(a, 0) : a;
  const auto matrix_b = b.rank() == 1 ? unsqueezed(b, 1) : b;
  Shape full = result;
  if (a.rank() == 1) full.insert(full.end() - 1, Dim(1));
  if (b.rank() == 1) full.push_back(Dim(1));
  return {reshaped(batched_product(matrix_a, matrix_b, full), result)};
}

std::vector<Type> infer_linear(const Infer& infer) {
  const DType dtype = common_dtype(infer, 2);
  const Shape& input = infer.type(0).shape;
  const Shape& weight = infer.type(1).shape;
  if (input.empty() || weight.size() != 2)
    infer.fail(cat("input ", infer.type(0), ", weight ", infer.type(1)));
  require_equal(infer, input.back(), weight[1], "features of input and weight differ");
  if (!infer.type(2).is_none()) {
    const Type& bias = tensor_of_rank(infer, 2, 1);
    if (bias.dtype != dtype) infer.fail(cat("bias is ", bias));
    require_equal(infer, bias.shape[0], weight[0], "bias and weight differ");
  }
  return {Type::tensor(dtype, with(leading(input, 1), {weight[0]}))};
}

/// x as a matrix: all dimensions but the last become one.
Expression rows(const Expression& x) {
  return reshaped(x, {element_count(leading(x.shape(), 1)), x.shape().back()});
}

void linear_gradient(Vjp& g) {
  const auto x = in(g, 0), weight = in(g, 1), dy = rows(dout(g));
  if (g.needs(0)) g.add(0, reshaped(apply(op::mm, dy, weight), x.shape()));
  if (g.needs(1)) g.add(1, apply(op::mm, swapped(dy), rows(x)));
  if (!g.needs(2)) return;
  g.add(2, x.rank() == 1 ? dout(g) : sum_over(dy, std::array<int64_t, 1>{0}, false));
}

}  // namespace

constinit const OpDef op::mm{
    .name = "mm",
    .doc = "The product of two matrices.",
    .schema = "(Tensor self, Tensor mat2) -> Tensor",
    .aten = "mm",
    .python = "mm Tensor.mm",
    .traits = product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .autocast = Autocast::lower,
    .infer = infer_product<2>,
    .vjp = [](Vjp& g) { product_gradient(g, op::mm); },
    .rows = for_rows::mm,
};

constinit const OpDef op::bmm{
    .name = "bmm",
    .doc = "The products of two batches of matrices.",
    .schema = "(Tensor self, Tensor mat2) -> Tensor",
    .aten = "bmm",
    .python = "bmm Tensor.bmm",
    .traits = product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .autocast = Autocast::lower,
    .infer = infer_product<3>,
    .vjp = [](Vjp& g) { product_gradient(g, op::bmm); },
};

constinit const OpDef op::mv{
    .name = "mv",
    .doc = "The product of a matrix and a vector.",
    .schema = "(Tensor self, Tensor vec) -> Tensor",
    .aten = "mv",
    .python = "mv Tensor.mv",
    .traits = product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const DType dtype = common_dtype(infer, 2);
      const Shape& matrix = tensor_of_rank(infer, 0, 2).shape;
      require_equal(infer, matrix[1], tensor_of_rank(infer, 1, 1).shape[0],
                    "inner dimensions differ");
      return {Type::tensor(dtype, {matrix[0]})};
    },
    .vjp =
        [](Vjp& g) {
          const auto dy = dout(g);
          if (g.needs(0)) g.add(0, outer_product(dy, in(g, 1)));
          if (g.needs(1)) g.add(1, apply(op::mv, swapped(in(g, 0)), dy));
        },
    .rows = for_rows::mv,
};

constinit const OpDef op::dot{
    .name = "dot",
    .doc = "The sum of the products of two vectors.",
    .schema = "(Tensor self, Tensor tensor) -> Tensor",
    .aten = "dot",
    .python = "dot Tensor.dot",
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const DType dtype = common_dtype(infer, 2);
      require_equal(infer, tensor_of_rank(infer, 0, 1).shape[0],
                    tensor_of_rank(infer, 1, 1).shape[0], "lengths differ");
      return {Type::tensor(dtype, {})};
    },
    .vjp =
        [](Vjp& g) {
          if (g.needs(0)) g.add(0, dout(g) * in(g, 1));
          if (g.needs(1)) g.add(1, dout(g) * in(g, 0));
        },
};

constinit const OpDef op::outer{
    .name = "outer",
    .doc = "All products of elements of two vectors.",
    .schema = "(Tensor self, Tensor vec2) -> Tensor",
    .python = "outer ger Tensor.outer Tensor.ger",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Dim row = tensor_of_rank(infer, 0, 1).shape[0];
      const Dim column = tensor_of_rank(infer, 1, 1).shape[0];
      const DType dtype = promoted(infer, std::array<size_t, 2>{0, 1});
      return {Type::tensor(dtype, {row, column})};
    },
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {outer_product(in(d, 0), in(d, 1))};
    },
};

constinit const OpDef op::addmm{
    .name = "addmm",
    .doc = "beta * self + alpha * mat1 @ mat2.",
    .schema = "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .aten = "addmm",
    .python = "addmm Tensor.addmm",
    .traits = product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .autocast = Autocast::lower,
    .infer = infer_added_product<2>,
    .vjp = [](Vjp& g) { added_product_gradient(g, op::mm); },
    .adds = for_rows::adds_product,
    .sum_of_rows = for_rows::sum_of_products,
};

constinit const OpDef op::baddbmm{
    .name = "baddbmm",
    .doc = "beta * self + alpha * batch1 @ batch2.",
    .schema =
        "(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .aten = "baddbmm",
    .python = "baddbmm Tensor.baddbmm",
    .traits = product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .autocast = Autocast::lower,
    .infer = infer_added_product<3>,
    .vjp = [](Vjp& g) { added_product_gradient(g, op::bmm); },
};

constinit const OpDef op::addmv{
    .name = "addmv",
    .doc = "beta * self + alpha * mat @ vec.",
    .schema = "(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .aten = "addmv",
    .python = "addmv Tensor.addmv",
    .traits = product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const DType dtype = common_dtype(infer, 3);
      if (!is_floating(dtype)) infer.fail("integer operands");
      const Shape& matrix = tensor_of_rank(infer, 1, 2).shape;
      require_equal(infer, matrix[1], tensor_of_rank(infer, 2, 1).shape[0],
                    "inner dimensions differ");
      const Shape shape{matrix[0]};
      if (broadcast(infer, tensor_type(infer, 0).shape, shape) != shape)
        infer.fail(janus::cat(infer.type(0), " does not broadcast to the product"));
      return {Type::tensor(dtype, shape)};
    },
    .vjp =
        [](Vjp& g) {
          const auto dy = dout(g), beta = in(g, 3), alpha = in(g, 4);
          add_gradient(g, 0, [&] { return times(dy, beta); });
          if (g.needs(1)) g.add(1, times(outer_product(dy, in(g, 2)), alpha));
          if (g.needs(2)) g.add(2, times(apply(op::mv, swapped(in(g, 1)), dy), alpha));
        },
};

constinit const OpDef op::matmul{
    .name = "matmul",
    .doc = "The product of vectors, matrices or batches of matrices by their ranks.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .python = "matmul Tensor.matmul linalg.matmul",
    .traits = composite | Trait::product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .autocast = Autocast::lower,
    .infer = infer_matmul,
    .decompose = decompose_matmul,
};

constinit const OpDef op::linear{
    .name = "linear",
    .doc = "input @ weight.T + bias.",
    .schema = "(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    .aten = "linear",
    .python = "nn.functional.linear _C._nn.linear",
    .traits = product,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .autocast = Autocast::lower,
    .infer = infer_linear,
    .vjp = linear_gradient,
    .rows = for_rows::linear,
};

}  // namespace janus
