#include "graph/datum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "graph/quote.h"

namespace janus::graph {
namespace {

/// Rounds to `digits` binary digits where the smallest normal exponent is `smallest` (as frexp
/// counts), with subnormals, and to infinity from `limit` on.
double round_to_format(double value, int digits, int smallest, double limit) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent, smallest) - digits);
  const double result = std::nearbyint(value / step) * step;
  if (std::fabs(result) >= limit)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return std::copysign(result, value);
}

double round_floating(double value, DType dtype) {
  switch (dtype) {
    case DType::f16:
      return round_to_format(value, 11, -13, 65536);
    case DType::bf16:
      return round_to_format(value, 8, -125, std::ldexp(1.0, 128));
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

int64_t wrap(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::i32:
      return static_cast<int32_t>(value);
    case DType::b1:
      return value != 0 ? 1 : 0;
    default:
      return value;
  }
}

/// x86's conversion, where C leaves the result undefined.
int64_t truncated(double value) {
  constexpr double limit = 9223372036854775808.0;
  if (!(value >= -limit && value < limit)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

bool same_number(const Number& a, const Number& b, DType dtype) {
  if (!is_floating(dtype)) return a.integer == b.integer;
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
  return std::bit_cast<uint64_t>(a.real) == std::bit_cast<uint64_t>(b.real);
}

bool close_doubles(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::fabs(a - b) <= tolerance * std::max({1.0, std::fabs(a), std::fabs(b)});
}

using SameNumber = std::function<bool(const Number&, const Number&, DType)>;

bool same(const Datum& a, const Datum& b, const SameNumber& same_number) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a))
    return same_number({.real = *x}, {.real = std::get<double>(b)}, DType::f64);
  if (const auto* x = std::get_if<DenseTensor>(&a)) {
    const auto& y = std::get<DenseTensor>(b);
    return x->dtype == y.dtype && x->sizes == y.sizes &&
           std::equal(
               x->elements.begin(), x->elements.end(), y.elements.begin(), y.elements.end(),
               [&](const Number& p, const Number& q) { return same_number(p, q, x->dtype); });
  }
  if (const auto* x = std::get_if<SharedList>(&a)) {
    const std::vector<Datum>&p = (*x)->items, &q = std::get<SharedList>(b)->items;
    return std::equal(p.begin(), p.end(), q.begin(), q.end(),
                      [&](const Datum& c, const Datum& d) { return same(c, d, same_number); });
  }
  if (const auto* x = std::get_if<ObjectReference>(&a)) return *x == std::get<ObjectReference>(b);
  if (const auto* x = std::get_if<bool>(&a)) return *x == std::get<bool>(b);
  if (const auto* x = std::get_if<int64_t>(&a)) return *x == std::get<int64_t>(b);
  if (const auto* x = std::get_if<std::string>(&a)) return *x == std::get<std::string>(b);
  return true;
}

void print(std::ostream& out, const DenseTensor& tensor) {
  out << name(tensor.dtype) << '[';
  for (size_t i = 0; i < tensor.sizes.size(); ++i) out << (i == 0 ? "" : ",") << tensor.sizes[i];
  out << "]{";
  for (size_t i = 0; i < tensor.elements.size(); ++i) {
    out << (i == 0 ? "" : ", ");
    if (is_floating(tensor.dtype))
      out << number_text(tensor.elements[i].real);
    else
      out << tensor.elements[i].integer;
  }
  out << '}';
}

}  // namespace

Number Number::of(double value, DType dtype) {
  return converted({.real = value}, DType::f64, dtype);
}
Number Number::of(int64_t value, DType dtype) {
  return converted({.integer = value}, DType::i64, dtype);
}

Number rounded(Number number, DType dtype) {
  TORCHJANUS_CHECK(!is_complex(dtype), "reference: no complex numbers");
  if (is_floating(dtype)) return {.real = round_floating(number.real, dtype)};
  return {.integer = wrap(number.integer, dtype)};
}

Number converted(Number number, DType from, DType to) {
  if (is_floating(from) && is_floating(to)) return rounded(number, to);
  if (!is_floating(from) && is_floating(to))
    return rounded({.real = static_cast<double>(number.integer)}, to);
  if (!is_floating(from)) return rounded(number, to);
  if (to == DType::b1) return {.integer = number.real != 0 ? 1 : 0};
  return rounded({.integer = truncated(number.real)}, to);
}

DenseTensor::DenseTensor(DType dtype, std::vector<int64_t> sizes)
    : dtype(dtype), sizes(std::move(sizes)) {
  size_t count = 1;
  for (const int64_t size : this->sizes) count *= static_cast<size_t>(size);
  elements.resize(count);
}

DenseTensor DenseTensor::of(DType dtype, std::vector<int64_t> sizes, std::vector<double> values) {
  DenseTensor result(dtype, std::move(sizes));
  TORCHJANUS_CHECK(result.elements.size() == values.size(), "reference: ", values.size(),
                   " values for ", result.elements.size(), " elements");
  for (size_t i = 0; i < values.size(); ++i) result.elements[i] = Number::of(values[i], dtype);
  return result;
}

bool identical(const Datum& a, const Datum& b) { return same(a, b, same_number); }

bool close(const Datum& a, const Datum& b, double tolerance) {
  return same(a, b, [&](const Number& p, const Number& q, DType dtype) {
    return is_floating(dtype) ? close_doubles(p.real, q.real, tolerance) : p.integer == q.integer;
  });
}

std::ostream& operator<<(std::ostream& out, const Datum& datum) {
  if (const auto* tensor = std::get_if<DenseTensor>(&datum)) {
    print(out, *tensor);
  } else if (const auto* flag = std::get_if<bool>(&datum)) {
    out << (*flag ? "true" : "false");
  } else if (const auto* integer = std::get_if<int64_t>(&datum)) {
    out << *integer;
  } else if (const auto* real = std::get_if<double>(&datum)) {
    out << number_text(*real);
  } else if (const auto* text = std::get_if<std::string>(&datum)) {
    out << quoted(*text);
  } else if (const auto* list = std::get_if<SharedList>(&datum)) {
    out << '[';
    for (size_t i = 0; i < (*list)->items.size(); ++i)
      out << (i == 0 ? "" : ", ") << (*list)->items[i];
    out << ']';
  } else if (const auto* object = std::get_if<ObjectReference>(&datum)) {
    out << (*object == nullptr ? "None" : cat("object of class ", (*object)->class_number));
  } else {
    out << "none";
  }
  return out;
}

}  // namespace janus::graph
