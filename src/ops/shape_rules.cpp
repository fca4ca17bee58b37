#include "ops/shape_rules.h"

#include <algorithm>
#include <numeric>

namespace janus::ops {

using namespace graph;

namespace {
constexpr size_t first_two[] = {0, 1};

std::vector<Type> broadcast_with(const Infer& infer, DType dtype) {
  return {Type::tensor(dtype, broadcast_inputs(infer, first_two))};
}
}  // namespace

const Type& tensor_type(const Infer& infer, size_t input) {
  const Type& type = infer.type(input);
  if (!type.is_tensor()) infer.fail(cat("operand ", input, " must be a tensor, came ", type));
  if (is_complex(type.dtype)) infer.fail(cat("complex operand ", type));
  return type;
}

const Type& floating_tensor(const Infer& infer, size_t input) {
  const Type& type = tensor_type(infer, input);
  if (!is_floating(type.dtype))
    infer.fail(cat("operand ", input, " must be floating, came ", type));
  return type;
}

const Type& tensor_of_rank(const Infer& infer, size_t input, int64_t rank) {
  const Type& type = tensor_type(infer, input);
  if (type.rank() != rank)
    infer.fail(cat("operand ", input, " must have ", rank, " dimensions, came ", type));
  return type;
}

void require_number(const Infer& infer, size_t input) {
  const Type& type = infer.type(input);
  if (!type.is_number() && !type.is_none())
    infer.fail(cat("operand ", input, " must be a number, came ", type));
}

int64_t wrap_dim(const Infer& infer, int64_t dim, int64_t rank) {
  const int64_t range = std::max<int64_t>(rank, 1);
  if (dim < -range || dim >= range)
    infer.fail(cat("dimension out of range: ", dim, " for a tensor of rank ", rank));
  return wrap_dim(dim, rank);
}

int64_t wrap_dim(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
}

std::vector<int64_t> reduced_dims(const Attributes& attributes, std::string_view name,
                                  int64_t rank) {
  const Shape listed = attributes.is_none(name) ? Shape{} : list_attribute(attributes, name);
  std::vector<int64_t> dims;
  const int64_t range = std::max<int64_t>(rank, 1);
  for (const Dim& entry : listed) {
    if (!entry.is_constant()) throw TypeError("a reduced dimension must be a known integer");
    if (entry.value() < -range || entry.value() >= range)
      throw TypeError(
          cat("dimension out of range: ", entry.value(), " for a tensor of rank ", rank));
    const int64_t dim = wrap_dim(entry.value(), rank);
    if (std::find(dims.begin(), dims.end(), dim) != dims.end())
      throw TypeError(cat("dimension ", dim, " appears twice"));
    dims.push_back(dim);
  }
  if (rank == 0) return {};
  if (listed.empty()) {
    dims.resize(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

Dim broadcast(const Infer& infer, const Dim& a, const Dim& b) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  infer.fail(cat("dimensions ", a, " and ", b, " do not broadcast"));
}

Shape broadcast(const Infer& infer, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), Dim(1));
  for (size_t i = 0; i < result.size(); ++i) {  // counted from the last dimension
    const Dim dim_a = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim dim_b = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    result[result.size() - 1 - i] = broadcast(infer, dim_a, dim_b);
  }
  return result;
}

Shape broadcast_inputs(const Infer& infer, std::span<const size_t> inputs) {
  Shape shape;
  bool any_tensor = false;
  for (const size_t input : inputs) {
    const Type& type = infer.type(input);
    if (type.is_number() || type.is_none()) continue;
    shape = broadcast(infer, shape, tensor_type(infer, input).shape);
    any_tensor = true;
  }
  if (!any_tensor) infer.fail("no operand is a tensor");
  return shape;
}

void require_equal(const Infer& infer, const Dim& a, const Dim& b, std::string_view what) {
  if (!(a == b)) infer.fail(cat(what, ": ", a, " against ", b));
}

DType promoted(const Infer& infer, std::span<const size_t> inputs) {
  std::vector<Type> types;
  for (const size_t input : inputs) {
    const Type& type = infer.type(input);
    if (!type.is_tensor() && !type.is_number() && !type.is_none())
      infer.fail(cat("operand ", input, " must be a tensor or a number, came ", type));
    types.push_back(type);
  }
  const DType dtype = result_type(types);
  if (is_complex(dtype)) infer.fail("complex operands");
  return dtype;
}

Shape reduced_shape(const Shape& shape, std::span<const int64_t> dims, bool keep) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) != dims.end();
    if (!reduced) {
      result.push_back(shape[i]);
    } else if (keep) {
      result.push_back(Dim(1));
    }
  }
  return result;
}

std::vector<Type> same_as_first(const Infer& infer) { return {tensor_type(infer, 0)}; }

std::vector<Type> same_as_floating(const Infer& infer) { return {floating_tensor(infer, 0)}; }

std::vector<Type> floating_like_first(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  return {Type::tensor(floating_result(type.dtype), type.shape)};
}

std::vector<Type> numeric_like_first(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (type.dtype == DType::b1) infer.fail("boolean operand");
  return {type};
}

std::vector<Type> boolean_like_first(const Infer& infer) {
  return {Type::tensor(DType::b1, tensor_type(infer, 0).shape)};
}

std::vector<Type> arithmetic(const Infer& infer) {
  return broadcast_with(infer, promoted(infer, first_two));
}

std::vector<Type> floating_arithmetic(const Infer& infer) {
  return broadcast_with(infer, floating_result(promoted(infer, first_two)));
}

std::vector<Type> comparison(const Infer& infer) {
  promoted(infer, first_two);
  return broadcast_with(infer, DType::b1);
}

}  // namespace janus::ops
