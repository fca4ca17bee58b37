// Scalar programs over numbers: computes one element of an elementwise node, rounding to the dtype
// after every step. Emitted code is checked against it.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/datum.h"
#include "graph/op.h"

namespace janus::graph {

/// The run must bail out: a Python int does not fit into 64 bits, or a division by zero.
class RunFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TypedNumber {
  Number number;
  DType dtype = DType::f32;
};

/// A Python number as an element; zero if it is none.
TypedNumber typed_number(const Datum& datum);

/// Whether an operand is rounded to half precision before it is widened for the computation in
/// `dtype`. That holds for operands that the schema calls tensors, numbers among them, but not for
/// parameters of the operator (`Scalar`).
bool meets_in_half(const Node& node, size_t index, DType dtype);

class ElementCode final : public ScalarCode {
 public:
  /// `dtype`: that of the computation; half precision is widened. `python_numbers`: integers are
  /// Python's, so overflow is a RunFailure instead of wrapping.
  ElementCode(const Node& node, DType dtype, bool python_numbers)
      : node_(node), dtype_(dtype), python_numbers_(python_numbers) {}

  /// Runs the node's scalar program on one element of each input; the result is in `result_dtype`.
  Number run(std::span<const TypedNumber> inputs, DType result_dtype);

  const Node& node() const override { return node_; }
  size_t input_count() const override { return inputs_.size(); }
  Scalar input(size_t index) override {
    const Scalar raw = raw_input(index);
    return convert(meets_in_half(node_, index, dtype_) ? convert(raw, dtype_) : raw,
                   compute_type());
  }
  Scalar raw_input(size_t index) override;
  DType compute_type() const override { return widened(dtype_); }
  Scalar constant(double value, DType dtype) override;
  Scalar convert(Scalar a, DType dtype) override;
  Scalar add(Scalar a, Scalar b) override;
  Scalar sub(Scalar a, Scalar b) override;
  Scalar mul(Scalar a, Scalar b) override;
  Scalar div(Scalar a, Scalar b) override;
  Scalar rem(Scalar a, Scalar b) override;
  Scalar neg(Scalar a) override;
  Scalar bit_and(Scalar a, Scalar b) override;
  Scalar bit_or(Scalar a, Scalar b) override;
  Scalar bit_xor(Scalar a, Scalar b) override;
  Scalar compare(Compare how, Scalar a, Scalar b) override;
  Scalar select(Scalar condition, Scalar a, Scalar b) override;
  using ScalarCode::call;
  Scalar call(std::string_view function, std::span<const Scalar> arguments) override;

 private:
  const Number& at(Scalar scalar) const;
  Scalar push(Number number, DType dtype);
  Scalar integer_result(bool overflow, int64_t value, DType dtype);
  void expect_same(Scalar a, Scalar b) const;

  const Node& node_;
  DType dtype_;
  bool python_numbers_;
  std::span<const TypedNumber> inputs_;
  std::vector<Number> values_;
};

}  // namespace janus::graph
