// Values of the reference interpreter: dense tensors and Python numbers, in the simplest form.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "graph/attribute.h"
#include "graph/type.h"

namespace janus::graph {

/// One element: floating dtypes use `real`, integers and booleans `integer`.
struct Number {
  double real = 0;
  int64_t integer = 0;

  static Number of(double value, DType dtype);
  static Number of(int64_t value, DType dtype);
  double as_double(DType dtype) const {
    return is_floating(dtype) ? real : static_cast<double>(integer);
  }
};

/// The nearest value that `dtype` can hold: floats are rounded to even, integers wrap around.
Number rounded(Number number, DType dtype);
/// As torch's `to`: float to integer truncates, anything to bool is `!= 0`.
Number converted(Number number, DType from, DType to);

/// Elements in row-major order.
struct DenseTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> sizes;
  std::vector<Number> elements;

  DenseTensor() = default;
  DenseTensor(DType dtype, std::vector<int64_t> sizes);  ///< zeros
  static DenseTensor of(DType dtype, std::vector<int64_t> sizes, std::vector<double> values);

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  double at(size_t index) const { return elements[index].as_double(dtype); }
};

struct DatumList;
/// The contents of a frame or a list; never null.
using SharedList = std::shared_ptr<const DatumList>;

struct DatumObject;
/// A Python object; null is None.
using ObjectReference = std::shared_ptr<const DatumObject>;

using Datum = std::variant<None, bool, int64_t, double, std::string, DenseTensor, SharedList,
                           ObjectReference>;

struct DatumList {
  std::vector<Datum> items;
};

/// The parts of an object that the operators of ops/object.cpp read.
struct DatumObject {
  int64_t class_number = -1;                ///< among the graph's known classes
  std::map<std::string, Datum> attributes;  ///< of an instance; the entries of a dictionary
  std::vector<Datum> items;
  bool is_sequence = false;
};

/// Equality of type, sizes and every element, to the bit; all NaNs are equal. Of objects: identity.
bool identical(const Datum& a, const Datum& b);
/// The same for types and sizes; floating elements may differ by `tolerance`, relative to the
/// larger (at least 1).
bool close(const Datum& a, const Datum& b, double tolerance);

std::ostream& operator<<(std::ostream& out, const Datum& datum);

}  // namespace janus::graph
