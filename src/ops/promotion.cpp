#include "ops/promotion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "ops/list.h"

namespace janus::ops {

using namespace graph;

namespace {

DType promote_floating(DType a, DType b) {
  if (byte_size(a) == byte_size(b)) return DType::f32;  // f16 with bf16
  return byte_size(a) > byte_size(b) ? a : b;
}

DType promote_complex(DType a, DType b) {
  const bool is_double = a == DType::c128 || b == DType::c128 || a == DType::f64 || b == DType::f64;
  return is_double ? DType::c128 : DType::c64;
}

DType promote_integral(DType a, DType b) {
  const int64_t size_a = byte_size(a);
  const int64_t size_b = byte_size(b);
  if (size_a == size_b) return DType::i16;  // u8 with i8
  return size_a > size_b ? a : b;
}

std::optional<DType> promote_present(std::optional<DType> a, std::optional<DType> b) {
  if (!a) return b;
  if (!b) return a;
  return promote(*a, *b);
}

/// The join of two groups of operands of different priority. The lower one counts only if its kind
/// (bool < integer < floating < complex) is higher.
std::optional<DType> join_groups(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return promote_present(higher, lower);
  if (is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? promote(*higher, DType::c64) : higher;
  if (*higher == DType::b1 || is_differentiable(*lower)) return promote(*higher, *lower);
  return higher;
}

thread_local DType current_default = DType::f32;

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::b1) return b;
  if (b == DType::b1) return a;
  if (is_complex(a) || is_complex(b)) return promote_complex(a, b);
  if (is_floating(a) && is_floating(b)) return promote_floating(a, b);
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  return promote_integral(a, b);
}

DType default_dtype() { return current_default; }

DefaultDtype::DefaultDtype(DType dtype) : before_(std::exchange(current_default, dtype)) {}
DefaultDtype::~DefaultDtype() { current_default = before_; }

DType dtype_of_number(const Type& number) {
  switch (number.kind) {
    case Type::Kind::i64:
      return DType::i64;
    case Type::Kind::f64:
      return default_dtype();
    case Type::Kind::boolean:
      return DType::b1;
    default:
      throw InternalError(cat("dtype_of_number: ", number, " is no number"));
  }
}

DType result_type(std::span<const Type> operands) {
  std::optional<DType> with_dimensions, without_dimensions, numbers;
  for (const Type& type : operands) {
    if (type.is_none()) continue;
    if (type.is_number()) {
      numbers = promote_present(numbers, dtype_of_number(type));
    } else if (type.shape.empty()) {
      without_dimensions = promote_present(without_dimensions, type.dtype);
    } else {
      with_dimensions = promote_present(with_dimensions, type.dtype);
    }
  }
  const auto joined = join_groups(with_dimensions, join_groups(without_dimensions, numbers));
  TORCHJANUS_CHECK(joined.has_value(), "result_type: there is no operand");
  return *joined;
}

DType floating_result(DType dtype) { return is_differentiable(dtype) ? dtype : default_dtype(); }

DType compute_dtype(const Node& elementwise) {
  const Type& result = elementwise.output()->type;
  if (result.dtype != DType::b1) return result.dtype;
  std::vector<Type> operands;
  for (const Value* input : elementwise.inputs) operands.push_back(input->type);
  return result_type(operands);
}

bool can_hold(DType dtype, double number) {
  if (is_floating(dtype)) {
    const double largest = dtype == DType::f16   ? 65504
                           : dtype == DType::f64 ? std::numeric_limits<double>::max()
                           : dtype == DType::f32 ? std::numeric_limits<float>::max()
                                                 : 0x1.fep127;
    return !std::isfinite(number) || std::abs(number) <= largest;
  }
  const bool is_unsigned = dtype == DType::u8 || dtype == DType::b1;
  const int64_t bits = dtype == DType::b1 ? 1 : 8 * byte_size(dtype);
  const double limit = std::ldexp(1, static_cast<int>(std::min<int64_t>(bits - !is_unsigned, 53)));
  return number == std::floor(number) && number < limit && number >= (is_unsigned ? 0 : -limit);
}

bool has_scalar_program(const Node& node) {
  if (node.op->scalar == nullptr) return false;
  for (const Value* output : node.outputs)
    if (!output->type.is_tensor() || is_complex(output->type.dtype)) return false;
  const bool divides = node.op->raises == graph::Raises::integer_zero;
  const bool powers = node.op == &op::pow || node.op == &op::pow_scalar || node.op == &op::pow_base;
  return !(divides || powers) || is_floating(node.output()->type.dtype);
}

}  // namespace janus::ops
