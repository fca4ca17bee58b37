#include "reference.h"

#include <bit>
#include <limits>

#include "ops/promotion.h"

namespace janus::kernels::reference {
namespace {

float round_to_bf16(float value) {
  if (std::isnan(value)) return value;
  auto bits = std::bit_cast<uint32_t>(value);
  bits += 0x7fff + ((bits >> 16) & 1);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

/// Rounds at the 11th significant bit, or at 2^-24 below the normal numbers. Scaling by powers of
/// two is exact, and nearbyint rounds ties to even.
double round_to_f16(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), -14);
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(value, 10 - exponent)), exponent - 10);
  return std::fabs(rounded) > 65504 ? std::copysign(INFINITY, value) : rounded;
}

uint16_t f16_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (size < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::ldexp(size, 24));
  const int exponent = std::ilogb(size);
  const auto fraction = static_cast<uint16_t>(std::ldexp(size, 10 - exponent) - 1024);
  return static_cast<uint16_t>(sign | ((exponent + 15) << 10) | fraction);
}

double f16_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
Element read_as(DType dtype, const void* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  if constexpr (std::is_floating_point_v<T>) return {.dtype = dtype, .floating = value};
  return {.dtype = dtype, .integer = static_cast<int64_t>(value)};
}

template <class T>
void write_as(T value, void* place) {
  std::memcpy(place, &value, sizeof value);
}

using Function = double (*)(double);
double call_unary(std::string_view name, double x) {
  static const std::map<std::string_view, Function> functions = {
      {"exp", std::exp},       {"exp2", std::exp2},    {"expm1", std::expm1},
      {"log", std::log},       {"log2", std::log2},    {"log10", std::log10},
      {"log1p", std::log1p},   {"sin", std::sin},      {"cos", std::cos},
      {"tan", std::tan},       {"asin", std::asin},    {"acos", std::acos},
      {"atan", std::atan},     {"sinh", std::sinh},    {"cosh", std::cosh},
      {"tanh", std::tanh},     {"asinh", std::asinh},  {"acosh", std::acosh},
      {"atanh", std::atanh},   {"erf", std::erf},      {"erfc", std::erfc},
      {"cbrt", std::cbrt},     {"sqrt", std::sqrt},    {"fabs", std::fabs},
      {"floor", std::floor},   {"ceil", std::ceil},    {"trunc", std::trunc},
      {"rint", std::rint},     {"round", std::round},  {"nearbyint", std::nearbyint},
      {"lgamma", std::lgamma}, {"tgamma", std::tgamma}};
  return functions.at(name)(x);
}

double call_binary(std::string_view name, double x, double y) {
  if (name == "pow") return std::pow(x, y);
  if (name == "atan2") return std::atan2(x, y);
  if (name == "fmod") return std::fmod(x, y);
  if (name == "hypot") return std::hypot(x, y);
  if (name == "copysign") return std::copysign(x, y);
  if (name == "fmin") return std::fmin(x, y);
  if (name == "fmax") return std::fmax(x, y);
  throw InternalError(cat("reference: no function ", name));
}

/// ScalarCode that computes at once.
class Evaluation final : public graph::ScalarCode {
 public:
  Evaluation(const graph::Node& node, const std::map<const graph::Value*, Element>& values)
      : node_(node), values_(values) {}

  const Element& element(Scalar scalar) const { return elements_[static_cast<size_t>(scalar.id)]; }

  const graph::Node& node() const override { return node_; }
  size_t input_count() const override { return node_.inputs.size(); }
  DType compute_type() const override {
    const DType dtype = ops::compute_dtype(node_);
    return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  }
  Scalar input(size_t index) override {
    const DType narrow = ops::compute_dtype(node_);
    const bool scales = node_.op->name == "mul" || node_.op->name == "div";
    if (!scales && narrow != compute_type() && node_.inputs[index]->type.is_number())
      return convert(convert(raw_input(index), narrow), compute_type());
    return convert(raw_input(index), compute_type());
  }
  Scalar raw_input(size_t index) override { return keep(values_.at(node_.inputs[index])); }
  Scalar constant(double value, DType dtype) override {
    return keep(graph::is_floating(dtype) ? floating(dtype, value)
                                          : integral(dtype, static_cast<int64_t>(value)));
  }
  Scalar convert(Scalar a, DType dtype) override {
    return keep(reference::convert(element(a), dtype));
  }
  Scalar add(Scalar a, Scalar b) override {
    if (a.dtype == DType::b1) return bit_or(a, b);
    return combine(
        a, b, [](double x, double y) { return x + y; },
        [](uint64_t x, uint64_t y) { return x + y; });
  }
  Scalar sub(Scalar a, Scalar b) override {
    return combine(
        a, b, [](double x, double y) { return x - y; },
        [](uint64_t x, uint64_t y) { return x - y; });
  }
  Scalar mul(Scalar a, Scalar b) override {
    if (a.dtype == DType::b1) return bit_and(a, b);
    return combine(
        a, b, [](double x, double y) { return x * y; },
        [](uint64_t x, uint64_t y) { return x * y; });
  }
  Scalar div(Scalar a, Scalar b) override {
    return combine(
        a, b, [](double x, double y) { return x / y; },
        [](uint64_t x, uint64_t y) {
          return static_cast<uint64_t>(static_cast<int64_t>(x) / static_cast<int64_t>(y));
        });
  }
  Scalar rem(Scalar a, Scalar b) override {
    return combine(
        a, b, [](double x, double y) { return std::fmod(x, y); },
        [](uint64_t x, uint64_t y) {
          return static_cast<uint64_t>(static_cast<int64_t>(x) % static_cast<int64_t>(y));
        });
  }
  Scalar neg(Scalar a) override {
    return combine(
        a, a, [](double x, double) { return -x; }, [](uint64_t x, uint64_t) { return -x; });
  }
  Scalar bit_and(Scalar a, Scalar b) override {
    return combine(a, b, nullptr, [](uint64_t x, uint64_t y) { return x & y; });
  }
  Scalar bit_or(Scalar a, Scalar b) override {
    return combine(a, b, nullptr, [](uint64_t x, uint64_t y) { return x | y; });
  }
  Scalar bit_xor(Scalar a, Scalar b) override {
    return combine(a, b, nullptr, [](uint64_t x, uint64_t y) { return x ^ y; });
  }
  Scalar compare(Compare how, Scalar a, Scalar b) override {
    const Element &x = element(a), &y = element(b);
    Element result = integral(DType::b1, x.is_floating() ? holds(how, x.floating, y.floating)
                                                         : holds(how, x.integer, y.integer));
    result.undefined = x.undefined || y.undefined;
    return keep(result);
  }
  Scalar select(Scalar condition, Scalar a, Scalar b) override {
    Element result = element(condition).integer != 0 ? element(a) : element(b);
    result.undefined = result.undefined || element(condition).undefined;
    return keep(result);
  }
  Scalar call(std::string_view function, std::span<const Scalar> arguments) override {
    const Element& x = element(arguments[0]);
    Element result = x;
    result.floating = arguments.size() == 1
                          ? call_unary(function, x.floating)
                          : call_binary(function, x.floating, element(arguments[1]).floating);
    result.undefined = x.undefined || (arguments.size() > 1 && element(arguments[1]).undefined);
    if (x.dtype == DType::f32) result.floating = static_cast<float>(result.floating);
    return keep(result);
  }

 private:
  template <class Number>
  static bool holds(Compare how, Number x, Number y) {
    switch (how) {
      case Compare::eq:
        return x == y;
      case Compare::ne:
        return x != y;
      case Compare::lt:
        return x < y;
      case Compare::le:
        return x <= y;
      case Compare::gt:
        return x > y;
      case Compare::ge:
        return x >= y;
    }
    return false;
  }

  /// Sums, products and quotients of two floats are right when computed in double and rounded.
  Scalar combine(Scalar a, Scalar b, double (*on_doubles)(double, double),
                 uint64_t (*on_integers)(uint64_t, uint64_t)) {
    const Element &x = element(a), &y = element(b);
    Element result = x.is_floating() ? floating(x.dtype, on_doubles(x.floating, y.floating))
                                     : integral(x.dtype, static_cast<int64_t>(on_integers(
                                                             static_cast<uint64_t>(x.integer),
                                                             static_cast<uint64_t>(y.integer))));
    result.undefined = x.undefined || y.undefined;
    return keep(result);
  }

  Scalar keep(const Element& element) {
    elements_.push_back(element);
    return {static_cast<int>(elements_.size()) - 1, element.dtype};
  }

  const graph::Node& node_;
  const std::map<const graph::Value*, Element>& values_;
  std::vector<Element> elements_;
};

Element constant_element(const graph::Node& node) {
  const graph::AttributeValue& value = *node.attributes.find("value");
  if (const auto* integer = std::get_if<int64_t>(&value)) return integral(DType::i64, *integer);
  if (const auto* boolean = std::get_if<bool>(&value)) return integral(DType::b1, *boolean);
  return floating(DType::f64, std::get<double>(value));
}

}  // namespace

Element floating(DType dtype, double value) {
  if (dtype == DType::f32) value = static_cast<float>(value);
  if (dtype == DType::bf16) value = round_to_bf16(static_cast<float>(value));
  if (dtype == DType::f16) value = round_to_f16(static_cast<float>(value));
  return {.dtype = dtype, .floating = value};
}

Element integral(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::u8:
      return {.dtype = dtype, .integer = static_cast<uint8_t>(value)};
    case DType::i8:
      return {.dtype = dtype, .integer = static_cast<int8_t>(value)};
    case DType::i16:
      return {.dtype = dtype, .integer = static_cast<int16_t>(value)};
    case DType::i32:
      return {.dtype = dtype, .integer = static_cast<int32_t>(value)};
    case DType::b1:
      return {.dtype = dtype, .integer = value != 0};
    default:
      return {.dtype = dtype, .integer = value};
  }
}

Element convert(const Element& from, DType dtype) {
  Element result;
  if (dtype == DType::b1) {
    result = integral(dtype, from.is_floating() ? from.floating != 0 : from.integer != 0);
  } else if (graph::is_floating(dtype)) {
    // An i64 that becomes an f32 is rounded once.
    const bool single = !from.is_floating() && dtype != DType::f64;
    result = floating(dtype, single ? static_cast<float>(from.integer) : from.number());
  } else if (from.is_floating()) {
    const double limit = dtype == DType::i64 ? 9.2e18 : dtype == DType::i32 ? 2147483000.0 : 120.0;
    result.dtype = dtype;
    result.undefined =
        !(std::fabs(from.floating) < limit) || (dtype == DType::u8 && from.floating < 0);
    if (!result.undefined) result = integral(dtype, static_cast<int64_t>(from.floating));
  } else {
    result = integral(dtype, from.integer);
  }
  result.undefined = result.undefined || from.undefined;
  return result;
}

Element read(DType dtype, const void* place) {
  switch (dtype) {
    case DType::f64:
      return read_as<double>(dtype, place);
    case DType::f32:
      return read_as<float>(dtype, place);
    case DType::f16:
      return {
          .dtype = dtype,
          .floating = f16_value(static_cast<uint16_t>(read_as<uint16_t>(dtype, place).integer))};
    case DType::bf16:
      return {.dtype = dtype,
              .floating = std::bit_cast<float>(
                  static_cast<uint32_t>(read_as<uint16_t>(dtype, place).integer) << 16)};
    case DType::i64:
      return read_as<int64_t>(dtype, place);
    case DType::i32:
      return read_as<int32_t>(dtype, place);
    case DType::i16:
      return read_as<int16_t>(dtype, place);
    case DType::i8:
      return read_as<int8_t>(dtype, place);
    default:
      return read_as<uint8_t>(dtype, place);
  }
}

void write(const Element& element, void* place) {
  switch (element.dtype) {
    case DType::f64:
      return write_as(element.floating, place);
    case DType::f32:
      return write_as(static_cast<float>(element.floating), place);
    case DType::f16:
      return write_as(f16_bits(element.floating), place);
    case DType::bf16:
      return write_as(static_cast<uint16_t>(
                          std::bit_cast<uint32_t>(static_cast<float>(element.floating)) >> 16),
                      place);
    case DType::i64:
      return write_as(element.integer, place);
    case DType::i32:
      return write_as(static_cast<int32_t>(element.integer), place);
    case DType::i16:
      return write_as(static_cast<int16_t>(element.integer), place);
    default:
      return write_as(static_cast<uint8_t>(element.integer), place);
  }
}

bool same(const Element& a, const Element& b) {
  if (!a.is_floating()) return a.integer == b.integer;
  if (std::isnan(a.floating) || std::isnan(b.floating))
    return std::isnan(a.floating) && std::isnan(b.floating);
  return a.floating == b.floating && std::signbit(a.floating) == std::signbit(b.floating);
}

double ulps(const Element& a, const Element& b) {
  if (same(a, b) || a.floating == b.floating) return 0;
  if (!std::isfinite(a.floating) || !std::isfinite(b.floating)) return INFINITY;
  const int precision = a.dtype == DType::f64 ? 52 : 23,
            smallest = a.dtype == DType::f64 ? -1022 : -126;
  const int exponent = std::max(std::ilogb(b.floating == 0 ? a.floating : b.floating), smallest);
  return std::ldexp(std::fabs(a.floating - b.floating), precision - exponent);
}

std::vector<Element> evaluate(const graph::Block& block, std::span<const Element> parameters) {
  std::map<const graph::Value*, Element> values;
  for (size_t i = 0; i < parameters.size(); ++i) values[block.parameters[i]] = parameters[i];
  for (const graph::Node* node : block.nodes) {
    if (node->op->name == "constant") {
      if (!node->output()->type.is_none()) values[node->output()] = constant_element(*node);
      continue;
    }
    Evaluation code(*node, values);
    const Element result = code.element(node->op->scalar(code));
    values[node->output()] = convert(result, node->output()->type.dtype);
  }
  std::vector<Element> results;
  for (const graph::Value* result : block.results) results.push_back(values.at(result));
  return results;
}

}  // namespace janus::kernels::reference
