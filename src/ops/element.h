// Lets scalar programs read like arithmetic: an Element is a scalar with the code that it belongs
// to. Literals take the dtype of the other operand.
//
//   .scalar = [](ScalarCode& k) -> Scalar { const auto x = element(k, 0); return x / (1 + exp(-x));
//   }
#pragma once

#include <string_view>

#include "graph/dim.h"
#include "graph/op.h"

namespace janus::ops {

using Scalar = graph::ScalarCode::Scalar;

class Element {
 public:
  Element(graph::ScalarCode& code, Scalar scalar) : code_(&code), scalar_(scalar) {}
  Element(double literal) : literal_(literal) {}  // NOLINT

  operator Scalar() const { return scalar_; }  // NOLINT: it is a scalar
  graph::ScalarCode* code() const { return code_; }
  graph::DType dtype() const { return scalar_.dtype; }
  /// The scalar, with a literal made a constant of dtype `dtype`.
  Scalar as(graph::ScalarCode& code, graph::DType dtype) const {
    return code_ != nullptr ? scalar_ : code.constant(literal_, dtype);
  }

 private:
  graph::ScalarCode* code_ = nullptr;
  Scalar scalar_;
  double literal_ = 0;
};

/// Operand `index` in the compute type.
inline Element element(graph::ScalarCode& code, size_t index) { return {code, code.input(index)}; }
/// Operand `index` in the compute type, without rounding a number or a tensor of one element to
/// half precision first: ATen's factors and divisors.
inline Element factor_element(graph::ScalarCode& code, size_t index) {
  const graph::Type& type = code.node().inputs[index]->type;
  if (type.is_tensor() && !graph::element_count(type.shape).is(1)) return element(code, index);
  return {code, code.convert(code.raw_input(index), code.compute_type())};
}
/// Operand `index` in its own type.
inline Element raw_element(graph::ScalarCode& code, size_t index) {
  return {code, code.raw_input(index)};
}

namespace detail {
template <class Make>
Element combine(const Element& a, const Element& b, Make&& make) {
  graph::ScalarCode& code = a.code() != nullptr ? *a.code() : *b.code();
  const graph::DType dtype = a.code() != nullptr ? a.dtype() : b.dtype();
  return {code, make(code, a.as(code, dtype), b.as(code, dtype))};
}
inline Element compare(graph::ScalarCode::Compare how, const Element& a, const Element& b) {
  return combine(a, b, [&](auto& code, Scalar x, Scalar y) { return code.compare(how, x, y); });
}
}  // namespace detail

inline Element operator+(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.add(x, y); });
}
inline Element operator-(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.sub(x, y); });
}
inline Element operator*(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.mul(x, y); });
}
inline Element operator/(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.div(x, y); });
}
inline Element operator%(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.rem(x, y); });
}
inline Element operator&(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.bit_and(x, y); });
}
inline Element operator|(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.bit_or(x, y); });
}
inline Element operator^(const Element& a, const Element& b) {
  return detail::combine(a, b, [](auto& code, Scalar x, Scalar y) { return code.bit_xor(x, y); });
}
inline Element operator-(const Element& a) { return {*a.code(), a.code()->neg(a)}; }

inline Element operator<(const Element& a, const Element& b) {
  return detail::compare(graph::ScalarCode::Compare::lt, a, b);
}
inline Element operator<=(const Element& a, const Element& b) {
  return detail::compare(graph::ScalarCode::Compare::le, a, b);
}
inline Element operator>(const Element& a, const Element& b) {
  return detail::compare(graph::ScalarCode::Compare::gt, a, b);
}
inline Element operator>=(const Element& a, const Element& b) {
  return detail::compare(graph::ScalarCode::Compare::ge, a, b);
}
inline Element operator==(const Element& a, const Element& b) {
  return detail::compare(graph::ScalarCode::Compare::eq, a, b);
}
inline Element operator!=(const Element& a, const Element& b) {
  return detail::compare(graph::ScalarCode::Compare::ne, a, b);
}

inline Element choice(const Element& condition, const Element& a, const Element& b) {
  return detail::combine(
      a, b, [&](auto& code, Scalar x, Scalar y) { return code.select(condition, x, y); });
}
inline Element convert(const Element& a, graph::DType dtype) {
  return a.dtype() == dtype ? a : Element(*a.code(), a.code()->convert(a, dtype));
}
/// A function of the C maths library.
inline Element maths(std::string_view function, const Element& a) {
  return {*a.code(), a.code()->call(function, Scalar(a))};
}
inline Element maths(std::string_view function, const Element& a, const Element& b) {
  return detail::combine(a, b, [&](auto& code, Scalar x, Scalar y) {
    const Scalar arguments[] = {x, y};
    return code.call(function, arguments);
  });
}
/// Rounded to the node's result type, where eager rounds half precision in between.
inline Element rounded(const Element& a) {
  return convert(convert(a, a.code()->node().output()->type.dtype), a.dtype());
}
inline Element is_nan(const Element& a) { return a != a; }

}  // namespace janus::ops
