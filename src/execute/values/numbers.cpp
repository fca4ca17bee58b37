// Slots to numbers and back.
#include "execute/values/numbers.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/list.h"

namespace janus::execute {

namespace {

constexpr size_t most_operands = 4;

ops::Number number_of(const Slot& slot) {
  switch (slot.kind()) {
    case Slot::Kind::boolean:
      return slot.boolean();
    case Slot::Kind::i64:
      return slot.i64();
    case Slot::Kind::f64:
      return slot.f64();
    default:
      TORCHJANUS_CHECK(false, "run_number: an operand is no number");
  }
}

}  // namespace

bool run_number(ops::NumberFunction function, const Operands& operands) {
  const size_t count = operands.inputs.size();
  TORCHJANUS_CHECK(count <= most_operands, "run_number: ", count, " operands");
  std::array<ops::Number, most_operands> numbers;
  for (size_t i = 0; i < count; ++i) numbers[i] = number_of(operands.in(i));
  const auto result = function(std::span(numbers.data(), count));
  if (!result) return false;
  operands.out(0) = std::visit([](auto value) { return Slot::of(value); }, *result);
  return true;
}

bool divides_by_zero(const graph::Node& node, const Operands& operands) {
  const bool divides = node.op == &op::scalar_truediv || node.op == &op::scalar_floordiv ||
                       node.op == &op::scalar_mod;
  if (node.op == &op::scalar_pow) return ops::to_double(number_of(operands.in(0))) == 0;
  return divides && ops::to_double(number_of(operands.in(1))) == 0;
}

namespace {

template <class Element>
Slot number_at(const void* data, graph::Type::Kind kind) {
  const Element element = *static_cast<const Element*>(data);
  switch (kind) {
    case graph::Type::Kind::f64:
      return Slot::of(static_cast<double>(element));
    case graph::Type::Kind::i64:
      return Slot::of(static_cast<int64_t>(element));
    default:
      return Slot::of(element != Element{0});
  }
}

/// The upper half of an f32.
double bfloat_at(const void* data) {
  const uint32_t bits = uint32_t{*static_cast<const uint16_t*>(data)} << 16;
  return static_cast<double>(std::bit_cast<float>(bits));
}

/// One bit of sign, five of exponent, ten of fraction.
double half_at(const void* data) {
  const uint16_t bits = *static_cast<const uint16_t*>(data);
  const int exponent = (bits >> 10) & 0x1f;
  const double fraction = bits & 0x3ff;
  double value = 0;
  if (exponent == 0x1f) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits >> 15) != 0 ? -value : value;
}

}  // namespace

bool can_read_item(const graph::Node& node) {
  const graph::DType dtype = node.inputs[0]->type.dtype;
  return node.output()->type.is_number() && !graph::is_complex(dtype);
}

Slot read_item(const graph::Node& node, const void* data) {
  const graph::Type::Kind kind = node.output()->type.kind;
  switch (node.inputs[0]->type.dtype) {
    case graph::DType::f32:
      return number_at<float>(data, kind);
    case graph::DType::f64:
      return number_at<double>(data, kind);
    case graph::DType::f16:
      return Slot::of(half_at(data));
    case graph::DType::bf16:
      return Slot::of(bfloat_at(data));
    case graph::DType::u8:
      return number_at<uint8_t>(data, kind);
    case graph::DType::i8:
      return number_at<int8_t>(data, kind);
    case graph::DType::i16:
      return number_at<int16_t>(data, kind);
    case graph::DType::i32:
      return number_at<int32_t>(data, kind);
    case graph::DType::i64:
      return number_at<int64_t>(data, kind);
    case graph::DType::b1:
      return number_at<bool>(data, kind);
    default:
      TORCHJANUS_CHECK(false, "read_item: unexpected element type");
  }
}

}  // namespace janus::execute
