// Matrix products into given memory, by MKL (through ATen), code of our own or oneDNN.
//
// Our own code is as fast as oneDNN where operands fit the cache, and nearly so beyond it; on some
// processors both are twice as fast as MKL, on others MKL wins. So products that are large enough
// to matter are timed the first time that their shape, or one much like it, comes up. oneDNN keeps
// half a MiB for each shape that it has seen: it is asked only where the operands are far larger.
#include "torch/products.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <optional>
#include <vector>

#include "base/policy.h"
#include "base/thread_pool.h"
#include "graph/constant.h"
#include "graph/op.h"
#include "kernels/product.h"
#include "kernels/sharing.h"
#include "ops/list.h"
#include "torch/grain.h"
#include "torch/tensor.h"
#include "torch/version.h"
#include "torch/ways.h"

// Exported by libtorch_cpu, declared in a header that is not shipped. Weak: where a torch has it
// not, its address is null.
namespace at::native {
__attribute__((weak)) TORCH_API void mkldnn_matmul(const Tensor& mat1, const Tensor& mat2,
                                                   const Tensor& result, float beta, float alpha);
}  // namespace at::native

// MKL's own entries, which libtorch_cpu exports where it was built with it.
extern "C" {
__attribute__((weak)) void sgemm_(const char*, const char*, const int*, const int*, const int*,
                                  const float*, const float*, const int*, const float*, const int*,
                                  const float*, float*, const int*);
__attribute__((weak)) void sgemv_(const char*, const int*, const int*, const float*, const float*,
                                  const int*, const float*, const int*, const float*, float*,
                                  const int*);
}

namespace janus::torch {

using execute::Operands;
using execute::Slot;

namespace {

enum class Way : uint8_t { mkl, own, onednn };  // as `choices` names them

struct Shape {
  int64_t batch, rows, columns, inner;
  bool left_transposed, right_transposed, added;
  int threads;
  auto operator<=>(const Shape&) const = default;

  /// Of operands and result.
  int64_t elements() const { return batch * (rows * inner + inner * columns + rows * columns); }
  /// What it has in common with those that are much like it.
  Shape rough() const {
    Shape shape = *this;
    for (int64_t* size : {&shape.batch, &shape.rows, &shape.columns, &shape.inner})
      *size = rough_size(*size);
    return shape;
  }
};

/// Whether oneDNN multiplies matrices of floats: on processors without AVX-512 torch refuses to ask
/// it.
bool takes_floats() {
  const at::Tensor one = at::ones({1, 1}, at::kFloat);
  at::Tensor product = at::empty({1, 1}, at::kFloat);
  try {
    at::native::mkldnn_matmul(one, one, product, 0, 1);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool has_onednn() {
  if (at::native::mkldnn_matmul == nullptr || !at::globalContext().userEnabledMkldnn())
    return false;
  static const bool has = takes_floats();
  return has;
}

std::string text_of(const Shape& shape) {
  return cat("product:", shape.batch, ',', shape.rows, ',', shape.columns, ',', shape.inner, ',',
             shape.left_transposed, shape.right_transposed, shape.added, ',', shape.threads);
}

Ways<Shape>& choices() {
  static Ways<Shape> instance({"mkl", "own", "onednn"}, text_of);
  return instance;
}

/// `run` must be repeatable.
template <class Run>
Way choose(const Shape& shape, const Run& run) {
  if (!kernels::has_products()) return Way::mkl;
  const bool is_large = forced_way >= 0 || shape.elements() >= policy::kLeastForOnednn;
  const size_t count = is_large && has_onednn() ? 3 : 2;
  return static_cast<Way>(
      choices().choose(shape.rough(), count, [&](int way) { run(static_cast<Way>(way)); }));
}

/// Whether these matrices, or batches of matrices, are multiplied by MKL alone.
bool is_for_mkl(const at::Tensor& left, const at::Tensor& right, const at::Tensor& out) {
  const auto is_matrix = [](const at::Tensor& t) {
    return t.scalar_type() == at::kFloat && ((t.stride(-1) == 1 && t.stride(-2) >= t.size(-1)) ||
                                             (t.stride(-2) == 1 && t.stride(-1) >= t.size(-2)));
  };
  return 2 * left.numel() * right.size(-1) < policy::kLeastTunedOperations || !is_matrix(left) ||
         !is_matrix(right) || out.scalar_type() != at::kFloat || !out.is_contiguous();
}

/// out += bias, a row.
void add_row(at::Tensor& out, const at::Tensor& bias) {
  if (!bias.is_contiguous() || bias.scalar_type() != at::kFloat) {
    out.add_(bias);
    return;
  }
  const int64_t columns = out.size(1);
  float* const data = out.mutable_data_ptr<float>();
  const float* const row = elements_of<float>(bias);
  parallel_for(out.size(0), grain(out.size(0), columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* __restrict to = data + r * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] += row[c];
    }
  });
}

Shape shape_of(const at::Tensor& left, const at::Tensor& right, bool added) {
  return {left.dim() == 3 ? left.size(0) : 1,
          left.size(-2),
          right.size(-1),
          left.size(-1),
          left.stride(-1) != 1,
          right.stride(-1) != 1,
          added,
          threads_of_products()};
}

kernels::Factor factor(const at::Tensor& matrix) {
  return {elements_of<float>(matrix), matrix.stride(-2), matrix.stride(-1)};
}

/// By our own code: the product, which the caller completes by what the sums start with.
kernels::Product own_product(const at::Tensor& left, const at::Tensor& right, at::Tensor& out) {
  return {.rows = left.size(-2),
          .columns = right.size(-1),
          .inner = left.size(-1),
          .left = factor(left),
          .right = factor(right),
          .out = out.mutable_data_ptr<float>(),
          .out_down = right.size(-1)};
}

/// Whether `bias` is a row as our own code adds it, or none.
bool is_plain_row(const at::Tensor& bias) {
  return !bias.defined() || (bias.is_contiguous() && bias.scalar_type() == at::kFloat);
}

}  // namespace

int64_t rough_size(int64_t size) {
  const int64_t step = std::max<int64_t>(
      1,
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, size)))) / 2);
  return (size + step - 1) / step * step;
}

int threads_of_products() { return at::in_parallel_region() ? 1 : at::get_num_threads(); }

void multiply(const at::Tensor& left, const at::Tensor& right, const at::Tensor& bias,
              at::Tensor& out) {
  const auto run = [&](Way way) {
    if (way == Way::own && is_plain_row(bias)) {
      kernels::Product product = own_product(left, right, out);
      if (bias.defined()) product.start = elements_of<float>(bias);
      kernels::multiply(product);
    } else if (way == Way::onednn) {
      at::native::mkldnn_matmul(left, right, out, 0, 1);
      if (bias.defined()) add_row(out, bias);
    } else if (bias.defined()) {
      at::cpu::addmm_out(out, bias, left, right);
    } else {
      at::cpu::mm_out(out, left, right);
    }
  };
  if (is_for_mkl(left, right, out)) return run(Way::mkl);
  run(choose(shape_of(left, right, bias.defined()), run));
}

void add_product(const at::Tensor& left, const at::Tensor& right, at::Tensor& out) {
  const auto run = [&](Way way, at::Tensor& to) {
    if (way == Way::own) {
      kernels::Product product = own_product(left, right, to);
      product.start = product.out;
      product.start_down = product.out_down;
      kernels::multiply(product);
    } else if (way == Way::onednn) {
      at::native::mkldnn_matmul(left, right, to, 1, 1);
    } else {
      at::cpu::addmm_out(to, to, left, right);
    }
  };
  if (is_for_mkl(left, right, out)) return run(Way::mkl, out);
  const Way way = choose(shape_of(left, right, false), [&](Way each) {
    at::Tensor to = at::zeros_like(out);  // what is timed is done several times
    run(each, to);
  });
  run(way, out);
}

namespace {

/// Each product of a batch, of which `first` is the first one, by our own code.
void multiply_each(const kernels::Product& first, const at::Tensor& left, const at::Tensor& right,
                   const at::Tensor& out) {
  const int64_t count = left.size(0);
  parallel_for(count, kernels::least_pieces(count * kernels::work_of(first), count),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   kernels::Product product = first;
                   product.left.data += i * left.stride(0);
                   product.right.data += i * right.stride(0);
                   product.out += i * out.stride(0);
                   kernels::multiply(product);
                 }
               });
}

/// The same of batches.
void multiply_batches(const at::Tensor& left, const at::Tensor& right, at::Tensor& out) {
  const auto run = [&](Way way) {
    if (way == Way::own) {
      multiply_each(own_product(left, right, out), left, right, out);
    } else if (way == Way::onednn) {
      at::native::mkldnn_matmul(left, right, out, 0, 1);
    } else {
      at::cpu::bmm_out(out, left, right);
    }
  };
  if (is_for_mkl(left, right, out)) return run(Way::mkl);
  run(choose(shape_of(left, right, false), run));
}

/// A matrix of floats as BLAS takes it; a vector is a row.
struct Matrix {
  float* data = nullptr;
  int rows = 0, columns = 0;
  int leading = 0;          ///< elements from one row (of a transposed matrix: column) to the next
  bool transposed = false;  ///< its columns, not its rows, are what is contiguous

  /// Nullopt for other tensors, empty ones among them.
  static std::optional<Matrix> of(const Slot& slot) {
    const at::TensorImpl* impl = impl_of(slot);
    const at::IntArrayRef sizes = impl->sizes(), strides = impl->strides();
    if (sizes.empty() || sizes.size() > 2 || impl->numel() == 0 || impl->numel() > INT_MAX ||
        impl->dtype() != caffe2::TypeMeta::Make<float>())
      return std::nullopt;
    const bool is_row = sizes.size() == 1;
    const int64_t rows = is_row ? 1 : sizes[0], columns = sizes.back();
    const int64_t down = is_row ? columns : strides[0], across = strides.back();
    Matrix matrix{.data = static_cast<float*>(const_cast<at::TensorImpl*>(impl)->mutable_data()),
                  .rows = static_cast<int>(rows),
                  .columns = static_cast<int>(columns)};
    if ((across == 1 || columns == 1) && (rows == 1 || down >= columns)) {
      matrix.leading = static_cast<int>(rows == 1 ? columns : down);
    } else if ((down == 1 || rows == 1) && (columns == 1 || across >= rows)) {
      matrix.leading = static_cast<int>(columns == 1 ? rows : across);
      matrix.transposed = true;
    } else {
      return std::nullopt;
    }
    return matrix;
  }

  Matrix turned() const { return {data, columns, rows, leading, !transposed}; }
  kernels::Factor factor() const {
    return {data, transposed ? 1 : leading, transposed ? leading : 1};
  }
};

/// What the sums of a product begin with.
enum class Begin : uint8_t { zeros, row, out };

/// Whether our own code is faster than MKL's for a small product: it has to lay a transposed right
/// operand out, whatever the number of rows, and goes over whole vectors of it.
bool is_for_own(const Matrix& left, const Matrix& right) {
  return kernels::has_products() && left.rows > 1 &&
         (!right.transposed || (left.rows >= policy::kLeastSidesForOwnProduct &&
                                right.columns >= policy::kLeastSidesForOwnProduct));
}

/// The same by MKL. The sums begin with what `out` holds, or zeros.
void multiply_by_mkl(const Matrix& left, const Matrix& right, const Matrix& out, bool adds) {
  const float one = 1, old = adds ? 1 : 0;
  // BLAS goes by columns: what it sees is the transposed product.
  if (left.rows == 1 && !left.transposed) {
    const int step = 1;
    const bool turn = right.transposed;
    const int m = turn ? right.rows : right.columns, n = turn ? right.columns : right.rows;
    sgemv_(turn ? "T" : "N", &m, &n, &one, right.data, &right.leading, left.data, &step, &old,
           out.data, &step);
    return;
  }
  sgemm_(right.transposed ? "T" : "N", left.transposed ? "T" : "N", &out.columns, &out.rows,
         &left.columns, &one, right.data, &right.leading, left.data, &left.leading, &old, out.data,
         &out.columns);
}

/// out = left right + `row`, or + out; for products whose calls cost more than they do. False: it
/// is none of those.
bool multiply_small(const std::optional<Matrix>& left, const std::optional<Matrix>& right,
                    const std::optional<Matrix>& out, Begin begin,
                    const std::optional<Matrix>& row = {}) {
  if (sgemm_ == nullptr || sgemv_ == nullptr || !left || !right || !out || out->transposed)
    return false;
  const int64_t work = int64_t{2} * left->rows * left->columns * right->columns;
  const bool fits =
      left->columns == right->rows && out->rows == left->rows && out->columns == right->columns;
  if (!fits || work >= policy::kLeastTunedOperations ||
      (out->rows > 1 && out->leading != out->columns))
    return false;
  if (begin == Begin::row &&
      (!row || row->rows != 1 || row->transposed || row->columns != out->columns))
    return false;
  if (is_for_own(*left, *right)) {
    kernels::multiply({.rows = out->rows,
                       .columns = out->columns,
                       .inner = left->columns,
                       .left = left->factor(),
                       .right = right->factor(),
                       .out = out->data,
                       .out_down = out->columns,
                       .start = begin == Begin::row   ? row->data
                                : begin == Begin::out ? out->data
                                                      : nullptr,
                       .start_down = begin == Begin::out ? out->columns : 0});
    return true;
  }
  if (begin == Begin::row)
    for (int i = 0; i < out->rows; ++i)
      std::copy_n(row->data, row->columns, out->data + int64_t{i} * out->columns);
  multiply_by_mkl(*left, *right, *out, begin != Begin::zeros);
  return true;
}

class Product final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  bool can_run_beside() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed left(operands.in(0)), right(operands.in(1));
    at::Tensor out = at::empty({left->size(0), right->size(1)}, left->options());
    multiply(*left, *right, {}, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    if (multiply_small(Matrix::of(operands.in(0)), Matrix::of(operands.in(1)),
                       Matrix::of(operands.out(0)), Begin::zeros))
      return;
    Borrowed left(operands.in(0)), right(operands.in(1)), out(operands.out(0));
    multiply(*left, *right, {}, *out);
  }
};

class BatchedProduct final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed left(operands.in(0)), right(operands.in(1));
    at::Tensor out = at::empty({left->size(0), left->size(1), right->size(2)}, left->options());
    multiply_batches(*left, *right, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed left(operands.in(0)), right(operands.in(1)), out(operands.out(0));
    multiply_batches(*left, *right, *out);
  }
};

/// A matrix plus a product.
class AddedProduct final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  bool can_run_in_place() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed matrix(operands.in(0)), left(operands.in(1)), right(operands.in(2));
    at::Tensor out = at::empty({left->size(0), right->size(1)}, left->options());
    out.copy_(*matrix);
    add(operands, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    const bool in_place = share_memory(operands.in(0), operands.out(0));
    if (in_place && multiply_small(Matrix::of(operands.in(1)), Matrix::of(operands.in(2)),
                                   Matrix::of(operands.out(0)), Begin::out))
      return;
    Borrowed out(operands.out(0)), matrix(operands.in(0));
    if (!in_place) out->copy_(*matrix);
    add(operands, *out);
  }

 private:
  static void add(const Operands& operands, at::Tensor& out) {
    Borrowed left(operands.in(1)), right(operands.in(2));
    add_product(*left, *right, out);
  }
};

/// A row plus each row of a product.
class ProductPlusRow final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed row(operands.in(0)), left(operands.in(1)), right(operands.in(2));
    at::Tensor out = at::empty({left->size(0), right->size(1)}, left->options());
    multiply(*left, *right, *row, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    if (multiply_small(Matrix::of(operands.in(1)), Matrix::of(operands.in(2)),
                       Matrix::of(operands.out(0)), Begin::row, Matrix::of(operands.in(0))))
      return;
    Borrowed row(operands.in(0)), left(operands.in(1)), right(operands.in(2));
    Borrowed out(operands.out(0));
    multiply(*left, *right, *row, *out);
  }
};

/// Whether what is added and the product are taken as they are.
bool adds_once(const graph::Node& node) {
  return node.op == &op::addmm && graph::constant_number(node.inputs[3]) == 1 &&
         graph::constant_number(node.inputs[4]) == 1;
}

/// Whether a product is added to a matrix of its own size, as it is.
bool adds_to_matrix(const graph::Node& node) {
  return adds_once(node) && node.inputs[0]->type == node.output()->type;
}

bool adds_to_rows(const graph::Node& node) {
  return adds_once(node) &&
         node.inputs[0]->type.shape == graph::Shape{node.output()->type.shape.back()};
}

class Linear final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed input(operands.in(0)), weight(operands.in(1));
    if (!is_plain(*input, *weight)) {
      operands.out(0) = slot_of(at::linear(*input, *weight, bias_of(operands)));
      return;
    }
    std::vector<int64_t> sizes = input->sizes().vec();
    sizes.back() = weight->size(0);
    at::Tensor out = at::empty(sizes, input->options());
    compute(*input, *weight, bias_of(operands), out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    if (compute_small(operands)) return;
    Borrowed input(operands.in(0)), weight(operands.in(1)), out(operands.out(0));
    if (is_plain(*input, *weight) && out->is_contiguous()) {
      compute(*input, *weight, bias_of(operands), *out);
    } else {
      out->copy_(at::linear(*input, *weight, bias_of(operands)));
    }
  }

 private:
  static at::Tensor bias_of(const Operands& operands) {
    return operands.in(2).is_tensor() ? tensor_of(operands.in(2)) : at::Tensor();
  }

  static bool compute_small(const Operands& operands) {
    const auto input = Matrix::of(operands.in(0)), weight = Matrix::of(operands.in(1));
    const auto out = Matrix::of(operands.out(0));
    if (!input || !weight) return false;
    if (!operands.in(2).is_tensor())
      return multiply_small(input, weight->turned(), out, Begin::zeros);
    return multiply_small(input, weight->turned(), out, Begin::row, Matrix::of(operands.in(2)));
  }

  static bool is_plain(const at::Tensor& input, const at::Tensor& weight) {
    return weight.dim() == 2 && input.dim() >= 2 && (input.dim() == 2 || input.is_contiguous());
  }

  static void compute(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      at::Tensor& out) {
    if (input.dim() == 2) return multiply(input, weight.t(), bias, out);
    at::Tensor flat = out.view({-1, weight.size(0)});
    multiply(input.view({-1, weight.size(1)}), weight.t(), bias, flat);
  }
};

}  // namespace

std::unique_ptr<execute::Operation> bind_product(const graph::Node& node) {
  if (node.op == &op::mm) return std::make_unique<Product>();
  if (node.op == &op::bmm) return std::make_unique<BatchedProduct>();
  if (adds_to_matrix(node)) return std::make_unique<AddedProduct>();
  if (adds_to_rows(node)) return std::make_unique<ProductPlusRow>();
  if (node.op == &op::linear) return std::make_unique<Linear>();
  return nullptr;
}

}  // namespace janus::torch
