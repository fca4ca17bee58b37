// Element-wise operators computed one element at a time in plain C++: what kernels are compared to.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/op.h"

namespace janus::kernels::reference {

using graph::DType;

/// A number of some dtype. Floating values are held exactly as a double.
struct Element {
  DType dtype = DType::f32;
  double floating = 0;
  int64_t integer = 0;
  bool undefined = false;  ///< C++ leaves open what it is: a float that its integer cannot hold

  bool is_floating() const { return graph::is_floating(dtype); }
  double number() const { return is_floating() ? floating : static_cast<double>(integer); }
};

Element floating(DType dtype, double value);   ///< rounded to dtype
Element integral(DType dtype, int64_t value);  ///< wrapped to dtype
Element convert(const Element& from, DType dtype);

Element read(DType dtype, const void* place);
void write(const Element& element, void* place);

/// Whether two elements have the same bits (any NaN is any other).
bool same(const Element& a, const Element& b);
/// Distance in units of the last place of the dtype; infinite where only one is NaN.
double ulps(const Element& a, const Element& b);

/// What `block` computes from one element of each parameter.
std::vector<Element> evaluate(const graph::Block& block, std::span<const Element> parameters);

}  // namespace janus::kernels::reference
