#include "ops/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "graph/element_code.h"
#include "ops/list.h"
#include "ops/number.h"
#include "ops/promotion.h"
#include "ops/reference_functions.h"

namespace janus::ops {

using namespace graph;

namespace {

using Index = std::vector<int64_t>;

// ---- Attributes and places --------------------------------------------------------------------

std::optional<int64_t> integer(const ReferenceCall& call, std::string_view name) {
  const AttributeValue* value = call.node.attributes.find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<int64_t>(value)) return *number;
  if (const auto* dim = std::get_if<Dim>(value)) return call.evaluate(*dim);
  return std::nullopt;
}

int64_t wrapped(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

/// The dimension in an attribute, counted from the front.
size_t dimension(const ReferenceCall& call, std::string_view name, int64_t rank) {
  return static_cast<size_t>(wrapped(integer(call, name).value_or(0), rank));
}

/// The dimensions in a list attribute; None or an empty list means all.
std::vector<bool> dimensions(const ReferenceCall& call, std::string_view name, int64_t rank) {
  const AttributeValue* value = call.node.attributes.find(name);
  std::vector<bool> chosen(static_cast<size_t>(rank), false);
  const auto choose = [&](int64_t dim) {
    if (rank > 0) chosen[static_cast<size_t>(wrapped(dim, rank))] = true;
  };
  if (const auto* shape = value == nullptr ? nullptr : std::get_if<Shape>(value))
    for (const Dim& dim : *shape) choose(call.evaluate(dim));
  if (const auto one = integer(call, name)) choose(*one);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end())
    chosen.assign(chosen.size(), true);
  return chosen;
}

size_t offset_of(const DenseTensor& tensor, const Index& index) {
  size_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i)
    offset = offset * static_cast<size_t>(tensor.sizes[i]) + static_cast<size_t>(index[i]);
  return offset;
}

/// Calls `visit(offset, index)` for each place of a tensor of these sizes, in order.
template <class Visit>
void for_each_place(const std::vector<int64_t>& sizes, Visit&& visit) {
  Index index(sizes.size(), 0);
  const auto count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  for (size_t offset = 0; offset < static_cast<size_t>(count); ++offset) {
    visit(offset, index);
    for (size_t i = sizes.size(); i-- > 0;) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
}

graph::Number make_number(double value, DType dtype) { return graph::Number::of(value, dtype); }

// ---- Views ------------------------------------------------------------------------------------

/// The same elements in the same order, in the result's shape.
std::vector<Datum> same_elements(const ReferenceCall& call) {
  DenseTensor result = call.result();
  result.elements = call.tensor(0).elements;
  return {result};
}

/// A result whose element at `index` is the operand's at `place(index)`.
template <class Place>
std::vector<Datum> gathered(const ReferenceCall& call, Place&& place) {
  const DenseTensor& from = call.tensor(0);
  DenseTensor result = call.result();
  for_each_place(result.sizes, [&](size_t offset, const Index& index) {
    result.elements[offset] = from.elements[offset_of(from, place(index))];
  });
  return {result};
}

std::vector<Datum> expand(const ReferenceCall& call) {
  const DenseTensor& from = call.tensor(0);
  return gathered(call, [&](const Index& index) {
    Index place(index.end() - from.rank(), index.end());
    for (size_t i = 0; i < place.size(); ++i)
      if (from.sizes[i] == 1) place[i] = 0;
    return place;
  });
}

std::vector<Datum> transpose(const ReferenceCall& call) {
  const int64_t rank = call.tensor(0).rank();
  const size_t first = dimension(call, "dim0", rank), second = dimension(call, "dim1", rank);
  return gathered(call, [&](Index index) {
    if (rank > 0) std::swap(index[first], index[second]);
    return index;
  });
}

std::vector<Datum> permute(const ReferenceCall& call) {
  const auto& dims = call.node.attributes.get<Shape>("dims");
  const int64_t rank = call.tensor(0).rank();
  return gathered(call, [&](const Index& index) {
    Index place(index.size());
    for (size_t i = 0; i < index.size(); ++i)
      place[static_cast<size_t>(wrapped(dims[i].value(), rank))] = index[i];
    return place;
  });
}

/// The offset of the row whose number is operand `input`.
size_t row_offset(const ReferenceCall& call, size_t input, const DenseTensor& tensor) {
  int64_t row = std::get<int64_t>(call.inputs[input]);
  const int64_t rows = tensor.sizes.front();
  if (row < -rows || row >= rows) throw RunFailure(cat("row ", row, " of ", rows));
  if (row < 0) row += rows;
  return static_cast<size_t>(row) * (tensor.elements.size() / static_cast<size_t>(rows));
}

std::vector<Datum> row(const ReferenceCall& call) {
  const DenseTensor& tensor = call.tensor(0);
  DenseTensor result = call.result();
  const auto first = tensor.elements.begin() + static_cast<ptrdiff_t>(row_offset(call, 1, tensor));
  std::copy_n(first, result.elements.size(), result.elements.begin());
  return {result};
}

std::vector<Datum> row_backward(const ReferenceCall& call) {
  DenseTensor result = call.result();
  const auto& elements = call.tensor(0).elements;
  std::ranges::copy(elements,
                    result.elements.begin() + static_cast<ptrdiff_t>(row_offset(call, 1, result)));
  return {result};
}

std::vector<Datum> add_to_row(const ReferenceCall& call) {
  DenseTensor result = call.tensor(0);
  const DenseTensor& other = call.tensor(1);
  const size_t first = row_offset(call, 2, result);
  for (size_t i = 0; i < other.elements.size(); ++i) {
    graph::Number& element = result.elements[first + i];
    element.real += other.elements[i].real;
    element.integer += other.elements[i].integer;
    element = rounded(element, result.dtype);
  }
  return {result};
}

std::vector<Datum> select(const ReferenceCall& call) {
  const DenseTensor& from = call.tensor(0);
  const size_t dim = dimension(call, "dim", from.rank());
  const int64_t chosen = wrapped(*integer(call, "index"), from.sizes[dim]);
  return gathered(call, [&](Index index) {
    index.insert(index.begin() + static_cast<int64_t>(dim), chosen);
    return index;
  });
}

int64_t slice_start(const ReferenceCall& call, int64_t size) {
  return std::clamp(wrapped(integer(call, "start").value_or(0), size), int64_t{0}, size);
}

std::vector<Datum> slice(const ReferenceCall& call) {
  const DenseTensor& from = call.tensor(0);
  const size_t dim = dimension(call, "dim", from.rank());
  const int64_t start = slice_start(call, from.sizes[dim]);
  const int64_t step = integer(call, "step").value_or(1);
  return gathered(call, [&](Index index) {
    index[dim] = start + index[dim] * step;
    return index;
  });
}

/// The base (zeros, or operand 0) with the elements of a piece at the places of a view.
template <class Place>
std::vector<Datum> scattered(DenseTensor base, const DenseTensor& piece, Place&& place) {
  for_each_place(piece.sizes, [&](size_t offset, const Index& index) {
    base.elements[offset_of(base, place(index))] = piece.elements[offset];
  });
  return {base};
}

/// The same for the places of a slice.
std::vector<Datum> scattered_slice(const ReferenceCall& call, const DenseTensor& base,
                                   const DenseTensor& source) {
  const size_t dim = dimension(call, "dim", base.rank());
  const int64_t start = slice_start(call, base.sizes[dim]);
  const int64_t step = integer(call, "step").value_or(1);
  return scattered(base, source, [&](Index index) {
    index[dim] = start + index[dim] * step;
    return index;
  });
}

std::vector<Datum> slice_backward(const ReferenceCall& call) {
  return scattered_slice(call, call.result(), call.tensor(0));
}

std::vector<Datum> slice_scatter(const ReferenceCall& call) {
  return scattered_slice(call, call.tensor(0), call.tensor(1));
}

std::vector<Datum> select_into(const ReferenceCall& call, const DenseTensor& base,
                               const DenseTensor& piece) {
  const size_t dim = dimension(call, "dim", base.rank());
  const int64_t chosen = wrapped(*integer(call, "index"), base.sizes[dim]);
  return scattered(base, piece, [&](Index index) {
    index.insert(index.begin() + static_cast<int64_t>(dim), chosen);
    return index;
  });
}

std::vector<Datum> select_backward(const ReferenceCall& call) {
  return select_into(call, call.result(), call.tensor(0));
}

std::vector<Datum> select_scatter(const ReferenceCall& call) {
  return select_into(call, call.tensor(0), call.tensor(1));
}

std::vector<Datum> cat_along(const ReferenceCall& call) {
  DenseTensor result = call.result();
  const size_t dim = dimension(call, "dim", result.rank());
  int64_t start = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const DenseTensor& piece = call.tensor(i);
    if (piece.sizes == std::vector<int64_t>{0}) continue;  // torch's empty tensor of rank 1
    for_each_place(piece.sizes, [&](size_t offset, Index index) {
      index[dim] += start;
      result.elements[offset_of(result, index)] =
          converted(piece.elements[offset], piece.dtype, result.dtype);
    });
    start += piece.sizes[dim];
  }
  return {result};
}

std::vector<Datum> stack(const ReferenceCall& call) {
  DenseTensor result = call.result();
  const size_t dim = dimension(call, "dim", result.rank());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const DenseTensor& piece = call.tensor(i);
    for_each_place(piece.sizes, [&](size_t offset, Index index) {
      index.insert(index.begin() + static_cast<int64_t>(dim), static_cast<int64_t>(i));
      result.elements[offset_of(result, index)] =
          converted(piece.elements[offset], piece.dtype, result.dtype);
    });
  }
  return {result};
}

// ---- Reductions -------------------------------------------------------------------------------

/// For each element of the result, the operand's elements (as doubles, in order) that belong to it.
std::vector<std::vector<double>> groups(const ReferenceCall& call, const DenseTensor& result,
                                        const std::vector<bool>& reduced) {
  const DenseTensor& from = call.tensor(0);
  std::vector<std::vector<double>> lists(result.elements.size());
  for_each_place(from.sizes, [&](size_t offset, const Index& index) {
    size_t place = 0;
    for (size_t i = 0; i < index.size(); ++i)
      if (!reduced[i])
        place = place * static_cast<size_t>(from.sizes[i]) + static_cast<size_t>(index[i]);
    lists[place].push_back(from.at(offset));
  });
  return lists;
}

template <double (*reduce)(const std::vector<double>&)>
std::vector<Datum> reduction(const ReferenceCall& call) {
  DenseTensor result = call.result();
  const auto lists = groups(call, result, dimensions(call, "dim", call.tensor(0).rank()));
  for (size_t i = 0; i < lists.size(); ++i)
    result.elements[i] = make_number(reduce(lists[i]), result.dtype);
  return {result};
}

double sum_of(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0);
}
double mean_of(const std::vector<double>& list) {
  return sum_of(list) / static_cast<double>(list.size());
}
double product_of(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), 1.0, std::multiplies<>());
}
double largest_of(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), list.at(0),
                         [](double a, double b) { return a > b || std::isnan(a) ? a : b; });
}
double smallest_of(const std::vector<double>& list) {
  return std::accumulate(list.begin(), list.end(), list.at(0),
                         [](double a, double b) { return a < b || std::isnan(a) ? a : b; });
}
double any_of(const std::vector<double>& list) {
  return std::any_of(list.begin(), list.end(), [](double x) { return x != 0; }) ? 1 : 0;
}
double all_of(const std::vector<double>& list) {
  return std::all_of(list.begin(), list.end(), [](double x) { return x != 0; }) ? 1 : 0;
}

/// The position of the first largest element; NaN counts as largest.
double place_of_largest(const std::vector<double>& list) {
  size_t best = 0;
  for (size_t i = 1; i < list.size() && !std::isnan(list[best]); ++i)
    if (list[i] > list[best] || std::isnan(list[i])) best = i;
  return static_cast<double>(best);
}

// ---- Matrix products --------------------------------------------------------------------------

double product_at(const DenseTensor& a, const DenseTensor& b, Index left, Index right,
                  size_t left_dim, size_t right_dim) {
  double sum = 0;
  for (int64_t k = 0; k < a.sizes[left_dim]; ++k) {
    left[left_dim] = right[right_dim] = k;
    sum += a.at(offset_of(a, left)) * b.at(offset_of(b, right));
  }
  return sum;
}

/// One element of the product of `a` and `b` over the last dimension of `a`. `b` may be a vector,
/// or have fewer leading dimensions.
double matrix_product(const DenseTensor& a, const DenseTensor& b, const Index& index) {
  const bool vector = b.rank() == 1;
  Index left(index.begin(), vector ? index.end() : index.end() - 1);
  left.push_back(0);
  if (vector) return product_at(a, b, left, {0}, left.size() - 1, 0);
  Index right(index.begin(), index.begin() + (b.rank() - 2));
  right.push_back(0);
  right.push_back(index.back());
  return product_at(a, b, left, right, left.size() - 1, right.size() - 2);
}

std::vector<Datum> product(const ReferenceCall& call) {
  DenseTensor result = call.result();
  for_each_place(result.sizes, [&](size_t offset, const Index& index) {
    result.elements[offset] =
        make_number(matrix_product(call.tensor(0), call.tensor(1), index), result.dtype);
  });
  return {result};
}

std::vector<Datum> dot(const ReferenceCall& call) {
  DenseTensor result = call.result();
  const double sum = product_at(call.tensor(0), call.tensor(1), {0}, {0}, 0, 0);
  result.elements[0] = make_number(sum, result.dtype);
  return {result};
}

/// The element of `tensor`, broadcast, at `index` of a larger shape.
double broadcast_at(const DenseTensor& tensor, const Index& index) {
  Index place(index.end() - tensor.rank(), index.end());
  for (size_t i = 0; i < place.size(); ++i)
    if (tensor.sizes[i] == 1) place[i] = 0;
  return tensor.at(offset_of(tensor, place));
}

/// beta * self + alpha * product; beta 0 leaves self out, whatever it holds.
std::vector<Datum> added_product(const ReferenceCall& call) {
  DenseTensor result = call.result();
  const double beta = call.number(3), alpha = call.number(4);
  for_each_place(result.sizes, [&](size_t offset, const Index& index) {
    const double base = beta == 0 ? 0 : beta * broadcast_at(call.tensor(0), index);
    const double sum = matrix_product(call.tensor(1), call.tensor(2), index);
    result.elements[offset] = make_number(base + alpha * sum, result.dtype);
  });
  return {result};
}

std::vector<Datum> linear(const ReferenceCall& call) {
  const DenseTensor &input = call.tensor(0), &weight = call.tensor(1);
  DenseTensor result = call.result();
  const bool has_bias = !std::holds_alternative<None>(call.inputs[2]);
  for_each_place(result.sizes, [&](size_t offset, const Index& index) {
    Index left(index.begin(), index.end() - 1);
    left.push_back(0);
    double sum = product_at(input, weight, left, {index.back(), 0}, left.size() - 1, 1);
    if (has_bias) sum += call.tensor(2).at(static_cast<size_t>(index.back()));
    result.elements[offset] = make_number(sum, result.dtype);
  });
  return {result};
}

// ---- Softmax ----------------------------------------------------------------------------------

/// Calls `visit` with the offsets of each line of elements along the attribute `dim`.
template <class Visit>
void for_each_line(const ReferenceCall& call, const DenseTensor& tensor, Visit&& visit) {
  if (tensor.sizes.empty()) return visit(std::vector<size_t>{0});
  const size_t dim = dimension(call, "dim", tensor.rank());
  for_each_place(tensor.sizes, [&](size_t, Index index) {
    if (index[dim] != 0) return;
    std::vector<size_t> line;
    for (; index[dim] < tensor.sizes[dim]; ++index[dim]) line.push_back(offset_of(tensor, index));
    visit(line);
  });
}

template <bool logarithm>
std::vector<Datum> softmax(const ReferenceCall& call) {
  const DenseTensor& from = call.tensor(0);
  DenseTensor result = call.result();
  for_each_line(call, from, [&](const std::vector<size_t>& line) {
    std::vector<double> values;
    for (const size_t offset : line) values.push_back(from.at(offset));
    const double largest = largest_of(values);
    double sum = 0;
    for (const double value : values) sum += std::exp(value - largest);
    for (size_t i = 0; i < line.size(); ++i) {
      const double shifted = values[i] - largest;
      const double value = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
      result.elements[line[i]] = make_number(value, result.dtype);
    }
  });
  return {result};
}

template <bool logarithm>
std::vector<Datum> softmax_backward(const ReferenceCall& call) {
  const DenseTensor &gradient = call.tensor(0), &output = call.tensor(1);
  DenseTensor result = call.result();
  for_each_line(call, output, [&](const std::vector<size_t>& line) {
    double sum = 0;
    for (const size_t at : line) sum += gradient.at(at) * (logarithm ? 1 : output.at(at));
    for (const size_t at : line) {
      const double value = logarithm ? gradient.at(at) - std::exp(output.at(at)) * sum
                                     : output.at(at) * (gradient.at(at) - sum);
      result.elements[at] = make_number(value, result.dtype);
    }
  });
  return {result};
}

// ---- Creation and conversion ------------------------------------------------------------------

template <int value>
std::vector<Datum> filled_with(const ReferenceCall& call) {
  DenseTensor result = call.result();
  for (graph::Number& element : result.elements) element = make_number(value, result.dtype);
  return {result};
}

/// A tensor filled with the last operand.
std::vector<Datum> full(const ReferenceCall& call) {
  DenseTensor result = call.result();
  const double value = call.number(call.inputs.size() - 1);
  for (graph::Number& element : result.elements) element = make_number(value, result.dtype);
  return {result};
}

std::vector<Datum> convert_dtype(const ReferenceCall& call) {
  const DenseTensor& from = call.tensor(0);
  DenseTensor result = call.result();
  for (size_t i = 0; i < result.elements.size(); ++i)
    result.elements[i] = converted(from.elements[i], from.dtype, result.dtype);
  return {result};
}

/// The single element of a tensor as a Python number.
std::vector<Datum> item(const ReferenceCall& call) {
  const DenseTensor& from = call.tensor(0);
  TORCHJANUS_CHECK(from.elements.size() == 1, "item: of ", from.elements.size(), " elements");
  switch (call.node.output()->type.kind) {
    case Type::Kind::boolean:
      return {from.at(0) != 0};
    case Type::Kind::i64:
      return {converted(from.elements[0], from.dtype, DType::i64).integer};
    default:
      return {from.at(0)};
  }
}

// ---- Python numbers ---------------------------------------------------------------------------

ops::Number number_of(const ReferenceCall& call, size_t input) {
  const Datum& datum = call.inputs[input];
  if (const auto* flag = std::get_if<bool>(&datum)) return *flag;
  if (const auto* integer = std::get_if<int64_t>(&datum)) return *integer;
  return call.number(input);
}

std::vector<Datum> python_number(const ReferenceCall& call) {
  std::vector<ops::Number> operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) operands.push_back(number_of(call, i));
  const auto result = call.node.op->number(operands);
  if (!result) throw RunFailure(cat(call.node.op->name, ": not a number that fits"));
  return {std::visit([](auto number) -> Datum { return number; }, *result)};
}

Reference make_reference() {
  Reference result;
  result.compute_dtype = compute_dtype;
  auto& functions = result.functions;
  add_structure(functions);
  add_objects(functions);
  add_containers(functions);
  for (const OpDef* op : {&op::view, &op::reshape, &op::squeeze, &op::squeeze_all, &op::unsqueeze,
                          &op::flatten, &op::contiguous, &op::clone, &op::detach})
    functions[op] = same_elements;
  functions[&op::expand] = expand;
  functions[&op::transpose] = transpose;
  functions[&op::permute] = permute;
  functions[&op::select] = select;
  functions[&op::row] = row;
  functions[&op::row_backward] = row_backward;
  functions[&op::add_to_row] = add_to_row;
  functions[&op::slice] = functions[&op::narrow] = slice;
  functions[&op::slice_backward] = slice_backward;
  functions[&op::slice_scatter] = slice_scatter;
  functions[&op::select_backward] = select_backward;
  functions[&op::select_scatter] = select_scatter;
  functions[&op::cat] = cat_along;
  functions[&op::stack] = stack;
  functions[&op::sum] = reduction<sum_of>;
  functions[&op::mean] = reduction<mean_of>;
  functions[&op::prod] = functions[&op::prod_dim] = reduction<product_of>;
  functions[&op::amax] = functions[&op::max] = reduction<largest_of>;
  functions[&op::amin] = functions[&op::min] = reduction<smallest_of>;
  functions[&op::any] = reduction<any_of>;
  functions[&op::all] = reduction<all_of>;
  functions[&op::argmax] = reduction<place_of_largest>;
  functions[&op::mm] = functions[&op::bmm] = functions[&op::mv] = product;
  functions[&op::dot] = dot;
  functions[&op::addmm] = functions[&op::baddbmm] = functions[&op::addmv] = added_product;
  functions[&op::linear] = linear;
  functions[&op::softmax_native] = softmax<false>;
  functions[&op::log_softmax_native] = softmax<true>;
  functions[&op::softmax_backward_data] = softmax_backward<false>;
  functions[&op::log_softmax_backward_data] = softmax_backward<true>;
  functions[&op::zeros] = functions[&op::zeros_like] = functions[&op::new_zeros] = filled_with<0>;
  functions[&op::ones] = functions[&op::ones_like] = functions[&op::new_ones] = filled_with<1>;
  functions[&op::full] = functions[&op::full_like] = functions[&op::new_full] = full;
  functions[&op::undefined] = [](const ReferenceCall& call) -> std::vector<Datum> {
    return {call.result()};
  };
  functions[&op::to] = convert_dtype;
  functions[&op::item] = item;
  for (const OpDef* op : all())
    if (op->number != nullptr) functions[op] = python_number;
  return result;
}

}  // namespace

const Reference& reference() {
  static const Reference instance = make_reference();
  return instance;
}

}  // namespace janus::ops
